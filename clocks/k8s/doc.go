// Package k8s implements the clock interfaces of k8s.io/utils/clock with a Scheduler.
// It also provides a FakeClock for tests.
//
// # Usage
//
// Pass a Clock to code that takes a clock.WithTickerAndDelayedExecution, or a smaller
// interface:
//
//	// client-go's queue of items that are added after a delay
//	queue := workqueue.NewTypedDelayingQueueWithConfig(
//		workqueue.TypedDelayingQueueConfig[string]{Clock: k8s.New(timer.Default())})
//
// In tests, pass a FakeClock, whose time moves only by Step, SetTime and Sleep.
//
// # Differences
//
// The FakeClock differs from that of k8s.io/utils in these ways:
//
//   - Timers and tickers behave like package time's since Go 1.23: after Stop or Reset,
//     no old value is received.
//   - Waiters does not count a stopped ticker.
//   - NewTicker panics if its period is not positive.
//   - Step fires each timer at its deadline, not all at the end.
//   - Step and SetTime may set the clock back. This does not delay timers: a timer
//     with a minute to go still fires after a minute. After Step(-time.Hour), the times
//     that timers and tickers send are an hour later than Now.
//
// # Concurrency
//
// Any goroutine may call any method, but only one at a time may move the clock.
// Callbacks run on the goroutine that moves the clock. They must not move it.
package k8s
