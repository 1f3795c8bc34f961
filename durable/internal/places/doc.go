// Package places decides what a Worker may run at once. Each running handler occupies one
// place. A claimer, the loop of a shard, reserves places before it claims tasks, so that a
// claimed task never waits for one: see [Pool.Reserve], [Grant.Count] and [Pool.Settle]. A
// claimer that gets no place joins a queue. When a place is free, the first claimer that can
// use it gets an offer: the place is reserved for it until it claims.
//
// The package knows neither loops nor a store: it fills those fields of a [store.Claim] that
// depend on places. Its rules:
//
//   - If a Worker has several handlers, the last quarter of its places are spare: they are
//     only for handlers that run nothing, one for each.
//   - A handler may have a limit: of places, and of tasks that start in a second.
//   - A suspect is a run that has crashed so often that it may be the cause: see
//     [store.IsSuspect]. Few run at a time, so that one that kills the process again takes few
//     others with it: one at first, one more for each that has returned, and one again after a
//     crash. A last suspect, whose next crash makes it a dead letter, runs only while no other
//     suspect does. All other tasks run beside suspects, and never wait for them.
//   - A handler that does not return long after its timeout hangs, and its place is given
//     again: see [Place.Watch].
package places
