// Package batch lets commands and rounds that wait at the same time share a transaction of a
// store.
//
// # Usage
//
// A store has one Queue for each shard, and one goroutine that runs Serve. T is what the
// calls work on in a transaction.
//
// # Guarantees
//
//   - Each call runs once in a transaction that commits, or returns an error. It may run before
//     in a transaction that is rolled back.
//   - A call whose context ends before its transaction begins does not run. A call that
//     has begun continues, and its caller does not wait for it.
//   - If a transaction surely failed because of one call, such as a panic in it, the others
//     still succeed: each call then gets a transaction of its own.
package batch
