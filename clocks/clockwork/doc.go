// Package clockwork implements the Clock interface of github.com/jonboulle/clockwork
// with a Scheduler, and provides a virtual clock for tests.
//
// # Usage
//
// Code that takes a clockwork.Clock gets its timers from Tickless:
//
//	server := NewServer(clockwork.New(timer.Default()))
//
// Tests can keep clockwork's own FakeClock. With this package's FakeClock, the code
// under test runs on a Scheduler, as in production:
//
//	fc := clockwork.NewFakeClock()
//	server := NewServer(fc)
//	fc.BlockUntilContext(ctx, 1)
//	fc.Advance(time.Minute)
//
// # Differences
//
// Timers and tickers behave as since Go 1.23, like those of clockwork's real clock but
// unlike those of its FakeClock: after Stop or Reset no earlier value is received, and
// a Stop that withdraws a value reports true. The delay of a timer that is started
// during an Advance counts from the time reached so far, not from the end of the
// Advance. A negative Advance sets the clock back and leaves the delays of pending
// timers as they are, like a change of the system's clock. These timers send the time
// that the clock would show without the change.
//
// Make a FakeClock with NewFakeClock or NewFakeClockAt: the zero value is not usable.
// clockwork.WithDeadline and clockwork.WithTimeout only work with clockwork's own
// FakeClock. Use the methods WithDeadline and WithTimeout of FakeClock.Scheduler
// instead.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package clockwork
