// Package pgstore is a store for package durable that keeps its tasks in PostgreSQL 14 or
// later, with the driver pgx.
//
// # Usage
//
//	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
//	...
//	_, err = pgstore.Migrate(ctx, pool)
//	...
//	st := pgstore.New(pool)
//	defer st.Close()
//	client := durable.New(st)
//
// [Store.ScheduleTx] schedules tasks in a transaction of the application. [Migrations] returns
// the SQL of [Migrate], for people who run migrations themselves.
//
// # Guarantees
//
// The Store keeps the promises of package store, and these:
//
//   - Acknowledged commands are as safe as the server's commits. [Store.Check] warns if
//     synchronous_commit or fsync is off. After a failover to a standby that lags, the latest
//     commands are lost, unless the server waits for the standby (synchronous_standby_names).
//     Running programs go on.
//   - Tasks are due by the clock of the server. The clocks of workers do not matter. If the
//     server's clock is set back, pending tasks wait longer. If it is set, leases start again
//     at the next command of a process, provided that the process also sent the command before.
//   - Nothing is held while a handler runs: no transaction, no lock, no connection.
//   - A transaction usually holds its shard's lock for two round trips. The server ends it after
//     10 s if the process or its host is gone.
//   - A transaction that fails with a deadlock, a serialization failure or a lost connection is
//     repeated, unless it may have been committed. Then the command's stamp decides when the
//     command is sent again.
//   - If the server's disk is full, a call has no effect and returns an error that wraps
//     [store.ErrFull].
//
// # How it works
//
// A Store runs package machine over the tables of a schema. A process puts all calls that wait
// for a shard into one transaction, which takes two round trips: the first takes the shard's
// advisory lock and reads, the second writes and commits. If no other process has changed the
// shard lately, new tasks take one. The numbers and the senders are
// versions that are inserted and deleted, never updated in place: reading one takes the same time
// while an old snapshot keeps dead rows.
//
// A command whose task is due before all others sends a NOTIFY after its commit, at most one
// each 10 ms. Each process with workers has a connection that listens, and also probes every
// 20 ms: see [WithProbe].
//
// # Concurrency
//
// A Store may be used from any goroutine. Any number of Stores in any number of processes may
// use a schema.
//
// # Complexity
//
// Scheduling, cancelling and finishing a task are O(log n) in the number of tasks.
//
// # When not to use it
//
// Without a PostgreSQL server that somebody looks after, a file is simpler: package
// sqlitestore. If tasks need no more than a second's safety, package redisstore is faster.
package pgstore
