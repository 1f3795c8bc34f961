// Package worker is the part of a [durable.Worker] that talks to the store. It knows leases,
// places and reports, but neither handlers nor the content of tasks.
//
//   - run.go: a Run has a Loop for each shard, and what the Loops share. It says what a Loop
//     asks of its Worker and of an attempt ([Call]).
//   - loop.go: when a Loop works, when it sleeps, and how it ends.
//   - round.go: what a Loop sends to the store, and what it claims.
//   - leases.go: which attempts a Loop has, and how it extends and loses their leases.
//   - report.go: how the end of an attempt is told.
//
// # Locks
//
// Each Loop has one lock, for what other goroutines tell it: reports, wake-ups, cancelled tasks
// and the phase of the shutdown. All else belongs to the Loop's goroutine. The lock of the
// [places.Pool] may be taken under it.
//
// An [Attempt] belongs to its Loop. What the handler's goroutine needs is in the Call.
package worker
