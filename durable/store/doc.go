// Package store defines the interface between package durable, whose clients and
// workers know about tasks, and the stores that keep tasks: in memory (package
// memstore), in a file, on a server. A [Store] knows nothing about handlers, retries or
// HTTP; package durable knows nothing about keys, scripts or transactions.
//
// # Usage
//
// Programs create a store and pass it to durable:
//
//	client := durable.New(memstore.New())
//
// Authors of stores test them with package storetest.
//
// # How it works
//
// A store keeps its tasks in shards. A task has an id, which is its key, and belongs to
// the shard that [ShardOf] returns for the id. In its shard it has exactly one [State].
//
// Pending tasks are ordered by when they are due, running ones by when their lease
// ends, dead letters by when they died. Each transition is part of one atomic command:
//
//   - [Store.Change] carries out a [Command] of a client: Schedule, Reschedule, Cancel, Requeue,
//     Purge, Import, Pause or Resume.
//   - [Store.Do] carries out a [Round] of a worker: reports on attempts, leases to extend, and a
//     claim.
//
// A task that is scheduled or rescheduled while it runs is Following: it stays Running,
// and when the attempt ends, whatever its result, the task becomes Pending at its new
// time without attempts. A task that is cancelled while it runs is Stopping: when the
// attempt ends, the task is removed, unless it is Following.
//
// If the attempts at a run end with an expired lease as often as a worker's round
// allows, the run becomes a dead letter. If the task repeats, as [Task.Repeats] says,
// the store does not know when it is due next. It then gives the task to a worker,
// which reports that the run is [Dropped].
//
// A repeating task never becomes a dead letter itself. Each of its runs that fails for
// good becomes a dead letter with the id [DeadID], and the task continues. All failed
// runs of a task share one dead letter, which describes the latest run, counts the
// runs, and keeps the latest failures of all of them. When it is requeued, it becomes a
// task that does not repeat, with the id [SingleID].
//
// Finished runs that a task asks to keep are entries in the state [Past], with ids of
// their own: see [Keeping]. Claims delete some of those that have expired.
//
// # Guarantees
//
//   - The store's clock decides when a task is due, when a lease ends and when a deadline has
//     passed. The clocks of clients and workers do not matter. No task is claimed before its
//     time by the store's wall clock. If that clock is set back, pending tasks wait until it
//     shows their times again.
//   - A claim gives each task a lease and a token. The tokens of a shard always grow, even
//     across restarts. None is less than the store's time, so that they also grow when a task
//     moves to another store. In a failover they grow unless the new server lacks the latest
//     claims and its clock is behind. Reports and extensions need the token of the task's
//     latest claim.
//   - A command has its effect once, however often it is sent: see [Stamp].
//   - A claim gets only tasks that its worker can run: see [Claim]. Other tasks stay Pending
//     without an attempt.
//   - A claim first ends attempts whose leases have expired, and then gets the tasks that
//     have been due longest.
//   - Acknowledged commands are as durable as the store's own documentation says.
//   - Every method returns when its context ends.
//
// # Concurrency
//
// Every method may be called from any goroutine.
//
// # Complexity
//
// Commands and rounds are O(log n) for each task, in the number of tasks in the shard,
// or better. Methods that cost more say so.
//
// # When not to use it
//
// Programs that schedule or run tasks use package durable.
package store
