// Package k8s implements the clock interfaces of k8s.io/utils/clock with a Scheduler,
// and provides a virtual clock for tests.
//
// # Usage
//
// Code that takes a clock.WithTickerAndDelayedExecution, or a smaller interface, gets
// its timers from Tickless:
//
//	// client-go's queue of items that are added after a delay
//	queue := workqueue.NewTypedDelayingQueueWithConfig(
//		workqueue.TypedDelayingQueueConfig[string]{Clock: k8s.New(timer.Default())})
//
// Tests can keep the FakeClock of k8s.io/utils/clock/testing. With this package's
// FakeClock, the code under test runs on a Scheduler, as in production.
//
// # Differences
//
// The FakeClock differs from that of k8s.io/utils in these ways:
//
//   - Timers and tickers behave like package time's since Go 1.23. After Stop or Reset,
//     no old value is received. Stop reports true if it removes an unreceived value.
//   - A stopped ticker does not count as a waiter.
//   - NewTicker panics if its period is not positive.
//   - Step fires each timer at its deadline, not all at the end.
//   - If SetTime or a negative Step sets the clock back, pending timers keep their
//     delays.
//
// # Concurrency
//
// Any goroutine may call any method. But only one call at a time may move the time.
// Callbacks run on the goroutine that moves the time, and must not move it themselves.
package k8s
