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
// The FakeClock differs from clockwork's own in these ways:
//
//   - Timers and tickers behave like package time's since Go 1.23. After Stop or Reset,
//     no old value is received. Stop reports true if it removes an unreceived value.
//   - A timer that starts during an Advance counts its delay from the time that the
//     clock has reached, not from the end of the Advance.
//   - A negative Advance sets the clock back. Pending timers keep their delays, and send
//     the times that the clock would show if it had not been set back.
//   - The zero FakeClock is not usable: call NewFakeClock or NewFakeClockAt.
//   - clockwork.WithDeadline and clockwork.WithTimeout do not work with it. Use the
//     methods of the same names of FakeClock.Scheduler.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package clockwork
