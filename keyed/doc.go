// Package keyed keeps values by key, each until its deadline: sessions, tokens, cache
// entries, retries.
//
// # Usage
//
//	sessions := keyed.New(scheduler, func(id string, s *session) { s.end() })
//	err := sessions.Set(id, s, 30*time.Minute) // starts it, or starts it again
//	...
//	sessions.Move(id, 30*time.Minute) // it is used
//	s, ok := sessions.Get(id)
//	s, ok = sessions.Remove(id) // it logs out
//
// # Guarantees
//
//   - The callback never runs early. How late it may run is the Scheduler's: see
//     package timer.
//   - A key whose deadline has passed is not there any more, for every method, from the
//     deadline on and not only once its callback runs.
//   - Each value leaves once: by its callback, by Remove, by Drain, or among what the
//     Scheduler hands back at its Close, unless a Set replaces it before its deadline. A
//     value that Set finds expired still reaches the callback.
//
// # Concurrency
//
// Any goroutine may call any method, also from inside callbacks. No lock is held while
// a callback, or the body of a loop, runs.
//
// # Complexity
//
// Set, SetIfAbsent, Move, Remove, Get and Deadline take O(1). A pending string key with
// an int takes about 120 bytes, of which the timer is 32. Memory falls when keys leave.
//
// # When not to use it
//
// It does not limit the number of keys, nor evict by use. Keys are lost with the
// process: what must survive it belongs in package durable.
package keyed
