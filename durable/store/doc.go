// Package store is the contract between package durable, whose clients and workers
// know about tasks, and the stores that keep them: in memory (package memstore), in a
// file, on a server. A [Store] has no knowledge of handlers, retries or HTTP; durable
// has none of keys, scripts or transactions.
//
// # Usage
//
// Programs make a store and hand it to durable:
//
//	client := durable.New(memstore.New())
//
// Whoever writes a store checks it with package storetest.
//
// # How it works
//
// A store keeps tasks in shards. A task has an id, which is its key, and is in the
// shard that [ShardOf] gives for it. In its shard it is in exactly one [State]:
//
// Pending tasks are ordered by when they are due, running ones by when their lease
// ends, dead letters by when they died. Each transition is part of one atomic command:
//
//   - [Store.Change] carries out a [Command] of clients: Schedule, Reschedule, Cancel,
//     Requeue, Purge, Pause, Resume.
//   - [Store.Do] carries out a [Round] of a worker: reports on what has run, leases to
//     extend, and a claim.
//
// What a task asks to keep of its runs that have ended are entries that are [Past], with
// ids of their own: see [Keeping]. A claim forgets some of those whose time is over.
//
// A task that is scheduled or rescheduled while it runs is Following: it stays Running,
// and when the attempt ends, however it ends, it is Pending, at its new time, with
// nothing tried. A task that is cancelled while it runs is Stopping: when the attempt
// ends it is gone, unless it is Following.
//
// A run whose attempts have ended with their lease as often as the round of a worker allows
// is dead, and nobody gets it any more, unless the task repeats, as [Task.Repeats] says:
// the store does not know when it is due next, and gives it to a worker, which reports
// that it is [Dropped].
//
// A task that repeats never dies whole. A run of it that failed for good becomes a dead
// letter of its own, with the id [DeadID], and the task goes on. All its runs that die
// share that dead letter, which holds the latest, counts them, and keeps the failures of
// all of them, as many as a task has. Requeued, it becomes a task that does not repeat,
// with the id [SingleID].
//
// # Guarantees
//
//   - Time is the store's: what is due, when a lease ends, when a deadline has passed.
//     The clocks of clients and workers do not matter. No task is claimed early by the
//     store's wall clock. If that is set back, what is due at a moment waits until the
//     clock shows the moment, and so does what was scheduled after some time.
//   - A claim gives a task a lease and a token. Tokens of a shard grow for ever, also
//     over restarts, and none is less than the store's time, so that they go on growing
//     when a task moves to another store. Over a failover they grow unless what takes
//     over lacks the latest claims and its clock is behind. A report and an extension need
//     the token of the task's latest claim.
//   - A command has its effect once, however often it is sent: see [Stamp].
//   - A claim gets only what its worker can run: see [Claim]. A task that no worker
//     knows stays Pending, and no attempt of it is counted.
//   - A claim gets the tasks that have been due longest, and first takes back the
//     leases that have run out.
//   - What a command acknowledged is kept as the store's own documentation says.
//   - No method goes on after its context has ended.
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
// Programs that schedule tasks or run them use package durable.
package store
