// Package timertest provides a virtual clock for tests of code that uses timers.
//
// # Usage
//
//	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
//	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
//	s.Start(365*24*time.Hour, f)
//	clk.Advance(365 * 24 * time.Hour) // f has run when this returns
//
// With this executor, Advance itself runs the callbacks. So callbacks must not sleep on
// the clock. With the default executor, callbacks run on other goroutines while the clock
// moves on. A timer that a callback starts may then be late.
//
// Packages idle and purgatory can use this clock too: pass it to idle.New with
// idle.WithClock, or give purgatory.New a Scheduler on the clock.
//
// # Guarantees
//
//   - Time moves only during [Clock.Advance], [Clock.AdvanceTo] and [Clock.Suspend].
//   - Alarms go off in the order of their moments. Alarms of equal moments go off in the
//     order in which they were set. During Advance, Now is the moment of the alarm.
//   - Advance returns when the functions of all due alarms have returned. For a Scheduler
//     with an executor.Inline, all due callbacks have then returned too.
//   - With such Schedulers, a program fires its timers in the same order every time.
//
// # Ticks
//
// A Scheduler rounds deadlines up to its tick, also on this clock. A tick is 0.1 ms, or
// 10 ms in package idle (idle.WithTick). If the clock moves by whole ticks only, a timer
// of whole ticks fires exactly after its delay. Otherwise advance by one more tick. A
// timer with slack (timer.WithSlack, idle.WithSlackShare) may fire later by its slack.
//
// # Concurrency
//
// Any goroutine may call Now and use alarms, even while time advances, and so may the
// functions that Advance calls. Only one Advance may run at a time.
//
// # Complexity
//
// Advance costs O(log n) for each alarm that goes off, where n is the number of set
// alarms. The duration does not matter.
//
// # When not to use it
//
// If the code under test sleeps, or waits on channels and contexts, use a
// testing/synctest bubble, which controls all of that too. A Scheduler that is made in a
// bubble needs no other clock.
package timertest
