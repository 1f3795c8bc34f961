// Package clockwork puts a Scheduler behind the Clock interface of
// github.com/jonboulle/clockwork, and a virtual clock for tests too.
//
// # Usage
//
// Code that takes a clockwork.Clock gets its timers from Tickless:
//
//	server := NewServer(clockwork.New(timer.Default()))
//
// Its tests use clockwork's own FakeClock as before, or this package's, which is
// package timertest's clock behind the same methods: so the code under test runs on
// a Scheduler as it does in production.
//
//	fc := clockwork.NewFakeClock()
//	server := NewServer(fc)
//	fc.BlockUntilContext(ctx, 1)
//	fc.Advance(time.Minute)
//
// # Differences
//
// Timers and tickers follow Go 1.23, as those of clockwork's real clock do, and not
// its FakeClock: after Stop or Reset no earlier value is received, and a Stop that
// withdraws a value reports true. A timer that is started while time advances counts
// from the moment that has been reached, not from the end of the Advance. Timers that are
// pending when a negative Advance sets the clock back keep their delays, as they do when
// the system's clock is set back; the times that they send are those of the clock without
// it. A FakeClock is made by NewFakeClock or NewFakeClockAt; its zero value cannot be
// used. clockwork.WithDeadline and
// clockwork.WithTimeout know only clockwork's own FakeClock: use the Scheduler's
// methods of these names, which a FakeClock's Scheduler returns.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package clockwork
