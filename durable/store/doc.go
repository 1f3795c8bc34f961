// Package store defines the interface between package durable and the stores that keep
// its tasks: in memory, in a file or on a server. A [Store] moves tasks from state to
// state. Package durable runs them, and decides about retries and schedules.
//
// # Usage
//
// Programs create a store and pass it to durable:
//
//	client := durable.New(memstore.New())
//
// Authors of stores test them with package durable/store/storetest.
//
// # Guarantees
//
//   - The store's clock decides when a task is due, and when a lease or a deadline ends. No
//     task is claimed early, even if the clock is set back.
//   - A claim gets only tasks that its worker can run, the longest overdue first. It gives
//     each task a lease and a token: see [Claim].
//   - A later token of a shard is larger, even after a restart. Tokens are at least the store's
//     time in microseconds, so that they also grow when a task moves to another store. A token
//     may repeat only after a failover to a server that lacks the latest claims and whose
//     clock is behind.
//   - Reports and extensions need the token of the task's latest claim.
//   - A command takes effect once, however often it is sent: see [Stamp].
//   - Acknowledged commands are as durable as the store's own documentation says.
//   - Every method returns when its context ends.
//
// # How it works
//
// A store keeps its tasks in shards. The id of a task is its key, and [ShardOf] says in
// which shard it is. A task has one [State] at a time. Two methods change states, and each
// change is atomic:
//
//   - [Store.Change] carries out a [Command] of a client, for example Schedule or Cancel.
//   - [Store.Do] carries out a [Round] of a worker: reports on attempts, leases to extend, and a
//     claim. The claim first ends attempts whose leases have expired.
//
// A Running task that is scheduled again is Following: when its attempt ends, it becomes
// Pending at its new time. A Running task that is cancelled is Stopping: when its attempt
// ends, it is removed, unless it was scheduled again after that. The result of the attempt
// does not matter.
//
// A change of a repeating task loses no run. A run that is due, being retried or running
// stays, and only what follows it changes. The run gets the new content: at once if it is
// Pending, or with its next attempt if it is Running and this attempt fails, is handed back
// or crashes. Such a task is Following until its run ends, not only its attempt. An ended run is
// kept, and followed, as the content of its last attempt asks.
//
// A run becomes a dead letter if it fails for good, or if too many of its leases expire. A
// repeating task also continues with its next run. Only a worker knows when that run is
// due. So after too many expired leases, a worker claims the task once more, runs nothing, and
// reports [Dropped].
//
// A run that has crashed often is a suspect: see [IsSuspect]. A claim says how many suspects
// it may get, because a suspect may crash its worker again. Only a suspect waits for another
// suspect.
//
// Each command that changes a task gives it a new Version, a number from the shard's counter of
// tokens. Attempts do not change the Version. A key never gets the same Version again, even if
// it is removed and scheduled again, so that a client can make a change only if the task is still
// as the client has seen it: see [Item]. A dead letter has the Version of its task, and
// a follow-up the token of the attempt before it.
//
// A task may be paused. No claim gets it until it is resumed, or rescheduled to run once. A
// pause changes neither the task's time nor its attempts, and lasts until the task ends. A
// Running task that is paused waits as soon as its attempt has ended.
//
// The tasks of a handler with the same group share a limit: see [Limit]. A claim gets at most
// [MaxOfGroup] tasks of one group, the oldest first. If that holds back a task, Answer.Next is
// zero. After SetLimit has raised a limit, a group may get only its first task once, with the
// same Next. Groups at their limit cost a claim nothing, however many there are, and delay no
// other task. A store keeps the state of a group only while its tasks run, or until its rate
// allows a full burst again.
//
// A handler may be paused: claims then get none of its tasks, which cost claims nothing while
// they wait. Its running tasks end as usual.
//
// A worker gives its number and a description with each claim. A Running task names the
// worker that has claimed it, and [Store.Workers] lists the workers: see [Worker].
//
// A task may ask the store to keep its finished runs, which are then Past: see [Keeping]. Once
// these have expired, no call returns or counts them, and the next claims delete them.
// A task may also ask for another task at the end of a run: see [FollowUps].
//
// # Concurrency
//
// Every method may be called from any goroutine.
//
// # Complexity
//
// Commands and rounds take O(log n) for each task, or less, with n tasks in the shard.
// Methods that cost more say so.
//
// # When not to use it
//
// Programs that schedule or run tasks use package durable.
package store
