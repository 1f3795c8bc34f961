// Package memstore is a store for package durable that keeps its tasks in memory. It is
// meant for tests of programs that use durable, for examples and for first steps.
//
// # Usage
//
//	client := durable.New(memstore.New())
//
// In a testing/synctest bubble the store, its workers and their handlers follow the
// bubble's clock, so that a test of a task that is due in a year takes no time. Use a
// store only in the bubble in which it was made. With [WithClock] and the clock of
// package timertest, the store and its workers follow that clock.
//
// # Guarantees
//
// Those of package store, as long as the process lives. Leases do not depend on the
// wall clock. If the wall clock is set forward, a worker notices within a minute.
//
// # Concurrency
//
// A Store may be used from any goroutine. Each shard has a lock, which each command
// holds while it runs.
//
// # Complexity
//
// Each shard has a heap of pending tasks for each handler and schedule. In the tasks of
// a shard, scheduling, cancelling, claiming and finishing a task are O(log n), and a page
// of List is O(n log n).
//
// # When not to use it
//
// If tasks must outlive the process. If they need not be tasks, package timer is much
// cheaper.
package memstore
