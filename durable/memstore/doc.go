// Package memstore is a store for package durable that keeps its tasks in the process'
// memory: for tests of programs that use durable, for examples, and to begin with.
//
// # Usage
//
//	client := durable.New(memstore.New())
//
// In a testing/synctest bubble all of it, workers and handlers included, follows the
// bubble's clock, so that a test of a task that is due in a year takes no time. Such a
// store can be used in its bubble alone: outside nobody knows its time, and calls, such as
// those of an exporter, return errors. With
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
// What is not due yet waits in a timing wheel (package timingwheel), what is due in a
// heap for each handler: scheduling, cancelling and finishing a task are O(1) until it
// is due, and O(log n) in what is due. A page of List is O(n log n), and Forecast O(n),
// in the tasks of a shard.
//
// # When not to use it
//
// Where tasks must outlive the process; and package timer is cheaper by far where they
// need not be tasks.
package memstore
