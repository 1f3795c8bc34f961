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
// Timers and tickers behave as since Go 1.23, like those of clock.RealClock but unlike
// those of the FakeClock of k8s.io/utils: after Stop or Reset no earlier value is
// received, a Stop that withdraws a value reports true, and a stopped ticker is not a
// waiter. NewTicker panics if its period is not positive. Step fires each timer at its
// deadline, not all at the end. Setting the clock back, by SetTime or a negative Step,
// leaves the delays of pending timers as they are.
//
// # Concurrency
//
// All methods may be called from any goroutine, except that only one method that moves
// the time may run at a time. Callbacks run on the goroutine that moves the time, and
// must not move it.
package k8s
