// Package memstore is a store for package durable that keeps its tasks in memory. Use it
// in tests, examples and first steps.
//
// # Usage
//
//	client := durable.New(memstore.New())
//
// In a testing/synctest bubble, the store and its workers follow the bubble's clock: a
// test of a task that is due in a year takes no time. Use a store only in the bubble in
// which it was made. [WithClock] sets another clock, for example that of package
// timertest.
//
// # Guarantees
//
// The guarantees are those of package store, while the process lives. Setting the wall
// clock does not change leases. If it is set forward, a worker notices within a minute.
//
// # Concurrency
//
// A Store may be used from any goroutine. Each command locks its shard while it runs.
//
// # Complexity
//
// A shard has a heap of pending tasks for each handler and schedule. With n tasks in the
// shard, scheduling, cancelling, claiming and finishing a task are O(log n). A page of List
// is O(n log n).
//
// # When not to use it
//
// Use another store if tasks must outlive the process. If they need not be tasks of
// package durable, package timer is much cheaper.
package memstore
