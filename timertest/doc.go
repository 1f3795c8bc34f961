// Package timertest is a virtual clock for tests of code that uses timers.
//
// # Usage
//
//	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
//	s := timer.New(timer.WithClock(clk))
//	s.Start(365*24*time.Hour, f)
//	clk.Advance(365 * 24 * time.Hour) // f has run when this returns
//
// # Guarantees
//
//   - Time stands still but for [Clock.Advance] and [Clock.AdvanceTo].
//   - Alarms ring in the order of their moments, and those of one moment in the
//     order in which they were set; each sees its own moment as the time.
//   - Advance returns when the functions of all alarms that were due have
//     returned. A Scheduler on this clock runs callbacks in them, unless it was
//     given an executor that does otherwise, so they have returned too.
//   - The same program gives the same order every time.
//
// # Concurrency
//
// Now and alarms may be used from any goroutine, also while time advances and
// from inside the functions that it runs. Only one Advance may run at a time.
//
// # Complexity
//
// Advancing costs O(log n) an alarm that rings, n being the alarms that are set,
// however far it goes: years pass in no time.
//
// # When not to use it
//
// If the code under test sleeps, or waits on channels and contexts, a
// testing/synctest bubble controls all of that too; a Scheduler that is made in
// a bubble needs no other clock.
package timertest
