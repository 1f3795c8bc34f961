// Package places decides what a Worker may run at once. Each running handler occupies one
// place. A claimer, which is the loop of a shard, reserves places before it claims tasks, so
// that a claimed task never waits for a place:
//
//	g := pool.Reserve(claimer, 100, false) // g.Claim says what may be claimed
//	for each claimed task:
//		g.Count(handler, isStarted, isSuspect)
//	pool.Settle(claimer, &g) // frees the places that are left
//
// An attempt that runs has a [Place], and releases it when its handler has returned.
//
// The package knows neither loops nor a store: it fills those fields of a [store.Claim] that
// depend on places.
//
// # Rules
//
//   - If a Worker has several handlers, the last quarter of its places are spare: they are
//     only for handlers that run nothing, one for each. So a slow handler leaves places for
//     the others.
//   - A handler may have a limit: of places, and of tasks that start in a second.
//   - A suspect is a run that has crashed so often that it may be the cause: see
//     [store.IsSuspect]. Few suspects run at a time, so that one that kills the process again
//     takes few others with it: one at first, one more for each that has returned, and one
//     again after a crash. A last suspect is one whose next crash makes it a dead letter. It
//     runs only while no other suspect does. All other tasks run beside suspects, and never
//     wait for them.
//   - A handler that does not return long after its timeout hangs, and its place is given
//     again: see [Place.Watch].
//
// A claimer that gets no place joins a queue. When a place is free, the first claimer that can
// use it gets an offer: the place is reserved for it until it claims.
package places
