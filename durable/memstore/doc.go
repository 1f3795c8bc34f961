// Package memstore is a store for package durable that keeps its tasks in the process'
// memory: for tests of programs that use durable, for examples, and to begin with.
//
// # Usage
//
//	client := durable.New(memstore.New())
//
// In a testing/synctest bubble all of it, workers and handlers included, follows the
// bubble's clock, so that a test of a task that is due in a year takes no time. Use such a
// store in its bubble alone, and others outside: the times differ by decades. With
// [WithClock] and the clock of package timertest the store and its workers follow that.
//
// # Guarantees
//
// Those of package store, as long as the process lives: nothing is written anywhere. When
// the wall clock is set, leases go on: a worker notices a clock that was set forward
// within a minute.
//
// # Concurrency
//
// A Store may be used from any goroutine. Each shard has a lock, which is held for
// one command at a time.
//
// # Complexity
//
// Tasks wait in a heap for each handler and schedule: scheduling, cancelling, claiming and
// finishing a task are O(log n) in the tasks of a shard, a page of List O(n log n), and
// Forecast O(n).
//
// # When not to use it
//
// Where tasks must outlive the process; and package timer is cheaper by far where they
// need not be tasks.
package memstore
