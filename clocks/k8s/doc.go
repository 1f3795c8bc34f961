// Package k8s puts a Scheduler behind the clock interfaces of k8s.io/utils/clock, and
// a virtual clock for tests too.
//
// # Usage
//
// Code that takes a clock.WithTickerAndDelayedExecution, or less, gets its timers
// from Tickless:
//
//	// client-go's queue of items that are added after a delay
//	queue := workqueue.NewTypedDelayingQueueWithConfig(
//		workqueue.TypedDelayingQueueConfig[string]{Clock: k8s.New(timer.Default())})
//
// Its tests use the FakeClock of k8s.io/utils/clock/testing as before, or this
// package's, which is package timertest's clock behind the same methods: so the code
// under test runs on a Scheduler as it does in production.
//
// # Differences
//
// Timers and tickers follow Go 1.23, as those of clock.RealClock do, and not the
// FakeClock of k8s.io/utils: after Stop or Reset no earlier value is received, a Stop
// that withdraws a value reports true, and a ticker that was stopped is no waiter any
// more. NewTicker panics if its period is not positive. Step fires what is due each at
// its moment, and not all at the end. A clock that is set back, by SetTime or a negative
// Step, leaves the delays of pending timers as they are.
//
// # Concurrency
//
// All methods may be called from any goroutine, but for those that move the time, of
// which only one may run at a time. Callbacks run on the goroutine that moves it, and
// must not move it themselves.
package k8s
