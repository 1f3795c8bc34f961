-- The beginning of every script. KEYS are the Redis keys of one shard. ARGV begins with
--
--   SCHEMA     the store's version and number of shards, and the shard's creation time, as
--              the Store in the process knows them
--   N FIELD... N fields of meta that the script reads
--
-- Times are microseconds since 1970, by the clock of this server. A double is exact for them
-- until the year 2255. But tostring would write an exponent, so always convert a time to a
-- string with int.
--
-- # What is stored
--
-- A kind says which handler and schedule a worker needs to run a task, and the task's group.
-- It consists of the length of the handler's name, a colon, that name, the schedule's name
-- and, if the task has a group, a NUL and the group. A damaged record has the empty kind.
--
-- A record is the value of a task in task. It consists of
--
--   due       16 digits: when the task was scheduled to run
--   format    the byte 5, or 4 for a record without a version
--   kind      2 bytes with the kind's length, and the kind
--   bytes     the bytes of package durable
--   version   16 digits, if the format is 5: the number of the latest change by a command
--
-- A run is the value of a task in run. It consists of seven words:
--
--   token attempt crashes due flags next kind
--
--   token    the fencing token of the lease, or 0 without a lease
--   attempt  how many attempts have started
--   crashes  how many attempts have ended with an expired lease
--   due      when the run was first due. For a head, until when the key cannot be scheduled
--   flags    some of these letters, or -
--              c  the running task was cancelled
--              n  the task has a new record in follows: it was scheduled again, or
--                 rescheduled with another generation
--              s  the first letter: the run is a suspect, see IsSuspect of package store
--              w  and digits: the number of the worker that has claimed the running task
--              f  and digits: when the pending task is due again, after its present run
--              p  the task is paused
--              o  the pending task is paused, but runs once
--   next     depends on the state:
--              running      when the task is due again, if it was scheduled or rescheduled
--                           meanwhile, or 0 for when the report says; otherwise -
--              pending      when the next attempt is due, or - for the time due
--              dead letter  of a repeating task: how many failed runs it stands for
--              head         how many runs of the key have been kept
--   kind     the kind in the record
--
-- A head is an entry of past for each key whose finished runs are kept: see kept.lua.
--
-- A pending task is in the ZSET "due:" + kind, at the time when it is due. The same time is
-- in its run, or in its record if it has no run, so that Repair can restore a missing entry.
-- The ZSET kinds has each kind, at the time of its first task or earlier, except kinds that
-- were set aside: see round.lua. The time of a kind that waits for a rate is later.
--
-- Suspects have kinds of their own, with an exclamation mark before the kind. Pending tasks that
-- wait because they are paused have kinds with a tilde, which are in aside and never in kinds.
--
-- Kinds with a group are in "groups:kinds" in place of kinds, unless they are set aside. Their
-- tasks are also in the ZSET "due:@" with the handler and the schedule, for lists and counts.
-- These are named in "groups:all". So 100,000 groups cost those nothing.
--
-- The hash meta has each sender's latest command under the sender's name: the command's
-- number, when it came, and the answer. Under "w:" and the name it has a worker's description.
--
-- # A task's life
--
--            schedule                 claim
--   (none) ───────────▶ due ──────────────────────────▶ lease ──▶ (none)  done, or cancelled
--                       ▲ ▲ │ cancel                     │  │
--                       │ │ └───▶ (none)                 │  │ no attempt left
--                       │ └──────────────────────────────┘  ▼
--                       │   retry, hand back, next run,    dead ──▶ (none)  purge
--                       │   lease expired, following        │
--                       └───────────────────────────────────┘ requeue, schedule
--
-- Finished runs that are kept are in past. They have ids of their own.
--
-- A task has a record, and is in exactly one of these ZSETs. From its first claim on it also
-- has a run. A pending task keeps its run between attempts and between runs. A dead letter
-- keeps its run as long as it exists.
--
-- # A crash during a script
--
-- If a server crashes while it writes its AOF, the AOF may contain only the first commands
-- of a script. These commands take effect at the second start. So the scripts follow rules:
--
--   - A script adds a task to its new ZSET before it removes the task from the old ZSET.
--   - A script that deletes a task deletes its record first. A task with a record still
--     exists, and Repair corrects its ZSETs.
--   - A script never deletes by rank, range or count: at the second start, this could delete
--     other tasks.
--   - A script records last that it has carried out the command.
local due, kinds, lease, dead, task, follows, run, err, wake, meta, crew, past, limits, ended, aside, lists, stopped, groups = unpack(KEYS)
local call, byte, sub, match = redis.call, string.byte, string.sub, string.match
local ARGV, tonumber = ARGV, tonumber -- locals are faster than globals
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
-- A paused repeating task is due at the time farthest. An entry of past that has this time
-- never expires.
local farthest = 7258118399999999

local function int(n) return string.format('%.0f', tonumber(n)) end

-- saved has the fields of meta that the script reads.
local values = call('HMGET', meta, 'schema', 'armed', unpack(ARGV, 3, 2 + ARGV[2]))
local saved = {schema = values[1], armed = values[2]}
for i = 3, #values do saved[ARGV[i]] = values[i] end
-- Usually the Store knows this shard, and SCHEMA is right.
if saved.schema ~= ARGV[1] then
  local schema, version, born = saved.schema, match(ARGV[1], '^([^@]*)@?(.*)$')
  if schema and match(schema, '^[^@]*') ~= version then
    return redis.error_reply('TICKLESS schema ' .. schema)
  end
  if not schema and born ~= '' then
    return redis.error_reply('TICKLESS lost')
  end
  -- The first command to the shard creates it.
  if not schema then
    schema = version .. '@' .. int(now)
    -- Redis stores a small hash as a list, and would search the list for each sender. A
    -- value of more than 64 bytes makes meta a real hash table.
    call('HSET', meta, 'schema', schema, 'table', string.rep('-', 65))
  end
  return redis.error_reply('TICKLESS is ' .. schema .. ' ' .. int(now))
end
local armed = tonumber(saved.armed or '')
local first = 3 + ARGV[2] -- the script's own arguments begin here
local claims = false -- whether this script also claims tasks
