// Package timertest is a virtual clock for tests of code that uses timers.
//
// # Usage
//
//	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
//	s := timer.New(timer.WithClock(clk))
//	s.Start(365*24*time.Hour, f)
//	clk.Advance(365 * 24 * time.Hour) // f has run when this returns
//
// Packages idle and purgatory follow it too: pass it to idle.New with idle.WithClock,
// or give purgatory.New a Scheduler on it.
//
// A Scheduler rounds deadlines up to its tick, also on this clock. As long as the
// clock moves by whole ticks, a timer of whole ticks fires exactly after its delay: a
// tick is 0.1 ms for a Scheduler and 10 ms in package idle (idle.WithTick). If a
// timer is started between two ticks, advance by one tick more. What has slack
// (timer.WithSlack, idle.WithSlack) may come later by that much.
//
// # Guarantees
//
//   - Time stands still except during [Clock.Advance] and [Clock.AdvanceTo].
//   - Alarms ring in the order of their moments, and those of one moment in the
//     order in which they were set; each sees its own moment as the time.
//   - Advance returns when the functions of all due alarms have returned. A Scheduler
//     on this clock runs its callbacks there, so they have returned too, unless you
//     gave it another executor.
//   - The same program gives the same order every time.
//
// # Concurrency
//
// Any goroutine may call Now and use alarms, also while time advances, and so may the
// functions that Advance runs. Only one Advance may run at a time.
//
// # Complexity
//
// Advancing costs O(log n) for each alarm that rings, where n is the number of alarms
// that are set. How far it goes does not matter: years pass in no time.
//
// # When not to use it
//
// If the code under test sleeps, or waits on channels and contexts, use a
// testing/synctest bubble, which controls all of that too. A Scheduler that is made
// in a bubble needs no other clock.
package timertest
