-- The time of the store, in microseconds since 1970.
CREATE FUNCTION tickless.clock() RETURNS bigint LANGUAGE sql VOLATILE
	AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

-- The versions of these tables, the highest of which counts.
CREATE TABLE tickless.migrations (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());

-- The tasks of a shard. Times are microseconds since 1970. In an id, U+0001 stands for NUL.
CREATE TABLE tickless.tasks (
	shard int NOT NULL, id text COLLATE "C" NOT NULL,
	state smallint NOT NULL, at bigint NOT NULL,
	handler text COLLATE "C" NOT NULL, schedule text COLLATE "C" NOT NULL, record bytea,
	due bigint NOT NULL, attempts int NOT NULL, token bigint NOT NULL, lease bigint NOT NULL,
	more text, suspect boolean NOT NULL,
	worker bigint NOT NULL, -- the number of the worker that runs the task, or 0
	version bigint NOT NULL, -- of the latest change by a command
	grp text COLLATE "C" NOT NULL DEFAULT '', -- the group
	PRIMARY KEY (shard, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tickless.tasks ALTER record SET STORAGE EXTERNAL;
-- Pending tasks, by handler, schedule and time. Suspects have an index of their own, so that
-- they delay no other task.
CREATE INDEX tasks_due ON tickless.tasks (shard, handler, schedule, at, id) WHERE state = 1 AND NOT suspect;
CREATE INDEX tasks_suspects ON tickless.tasks (shard, at, id) WHERE state = 1 AND suspect;
-- All other tasks, by state and time. State 6 is for pending tasks that are paused, and 9 for
-- those that are parked: see package machine.
CREATE INDEX tasks_rest ON tickless.tasks (shard, state, at, id) WHERE state > 1;
-- Tasks with a group.
CREATE INDEX tasks_grouped ON tickless.tasks (shard, handler, grp, state, suspect, schedule, at) WHERE grp <> '';
-- The states of groups, as JSON, and when a claim must look at them.
CREATE TABLE tickless.groups (
	shard int NOT NULL, handler text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
	until bigint NOT NULL, value text NOT NULL,
	PRIMARY KEY (shard, handler, name)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX groups_until ON tickless.groups (shard, until);
-- Finished runs, by the time when they ended: see store.RunRecord.
CREATE INDEX tasks_ended ON tickless.tasks (shard, substr(record, 2, 16), id) WHERE state = 4 AND length(record) > 16;
-- Tasks that have failed, to list them by error.
CREATE INDEX tasks_more ON tickless.tasks (shard, state, at, id) WHERE more IS NOT NULL;

-- What a shard remembers beside its tasks, as JSON: its numbers under the name '', and the
-- latest command of each sender. The highest version of a name counts. A command inserts
-- new versions and deletes those that it has read, so that reading a name takes the same
-- time while an old snapshot keeps dead rows.
CREATE TABLE tickless.versions (
	shard int NOT NULL, name text COLLATE "C" NOT NULL, version bigint NOT NULL,
	-- When the sender was last seen. For the numbers: no lease ends before this time.
	at bigint NOT NULL,
	wakes bigint NOT NULL, -- the number of wake-ups so far
	worker boolean NOT NULL, -- whether the sender is a worker
	value text NOT NULL,
	PRIMARY KEY (shard, name, version)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX versions_workers ON tickless.versions (shard, name) WHERE worker;

-- Tasks that were scheduled in a transaction of the application and are not yet in the
-- table of tasks. Rows become visible out of order, but not before all transactions with a
-- lower tx have ended that a snapshot's xmin says have ended.
CREATE TABLE tickless.inbox (
	shard int NOT NULL, tx xid8 NOT NULL DEFAULT pg_current_xact_id(), number bigint GENERATED ALWAYS AS IDENTITY,
	id text COLLATE "C" NOT NULL, handler text COLLATE "C" NOT NULL, schedule text COLLATE "C" NOT NULL, record bytea,
	at bigint NOT NULL, grp text COLLATE "C" NOT NULL DEFAULT '',
	PRIMARY KEY (shard, tx, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX inbox_ids ON tickless.inbox (shard, id);
