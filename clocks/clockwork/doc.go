// Package clockwork implements the Clock interface of github.com/jonboulle/clockwork
// with a Scheduler. It also provides a FakeClock for tests.
//
// # Usage
//
// Pass a Clock to code that takes a clockwork.Clock:
//
//	server := NewServer(clockwork.New(timer.Default()))
//
// In tests, pass a FakeClock, whose time moves only by Advance:
//
//	fc := clockwork.NewFakeClock()
//	server := NewServer(fc)
//	fc.BlockUntilContext(ctx, 1) // until the server has started a timer
//	fc.Advance(time.Minute)
//
// # Differences
//
// The FakeClock differs from clockwork's own in these ways:
//
//   - Timers and tickers behave like package time's since Go 1.23: after Stop or Reset,
//     no old value is received.
//   - A timer that starts during an Advance may fire in the same Advance.
//   - A negative Advance changes only the results of Now, Since and Until: a timer with
//     a minute to go still fires after a minute. After Advance(-time.Hour), the times
//     that timers and tickers send are an hour later than Now.
//   - The zero FakeClock is not usable: call NewFakeClock or NewFakeClockAt.
//   - clockwork.WithDeadline and clockwork.WithTimeout ignore a FakeClock: their contexts
//     follow the system's clock.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package clockwork
