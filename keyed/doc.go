// Package keyed keeps values by key, each until its deadline: sessions, tokens, cache
// entries, retries.
//
// # Usage
//
//	sessions := keyed.New(scheduler, func(id string, s *session) { s.end() })
//	err := sessions.Set(id, s, 30*time.Minute) // start or restart a session
//	...
//	s, ok := sessions.GetAndMove(id, 30*time.Minute) // the session is used
//	s, ok = sessions.Remove(id) // the user logs out
//
// A cache reads with [Timers.GetOrLoad], which loads a missing key once for all callers
// that wait for it.
//
// # Guarantees
//
//   - The callback never runs early. How late it may run depends on the Scheduler: see
//     package timer.
//   - A key disappears at its deadline. After that moment no method finds the key, even
//     if its callback has not run yet. Only Len may still count it.
//   - Each value goes to exactly one place: to the callback, or to the caller of Remove or
//     Drain. Exceptions: if Set replaces the value of a pending key, the old value is
//     dropped; Swap returns it. If the Scheduler is closed first, the Func of each timer
//     that its TakeLeftover returns runs the callback.
//
// # Concurrency
//
// Any goroutine may call any method, even from a callback. No lock is held while a
// callback, or the body of a loop, runs.
//
// # Complexity
//
// All methods take O(1), except All, Items and Drain. A pending string key with an int
// takes 150 to 200 bytes, 32 of them for the timer. Memory shrinks when keys leave: a
// call that removes a key may copy a 64th of those that remain.
//
// # When not to use it
//
// The package does not limit the number of keys, or evict the least used. Keys are lost
// with the process: package durable keeps them.
package keyed
