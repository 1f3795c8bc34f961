// Package jobs runs functions repeatedly: with a period, or by the calendar.
//
// # Usage
//
//	poll, err := jobs.Periodic(scheduler, 10*time.Second, fetch)
//	nightly, err := jobs.ParseCron("30 2 * * 1-5", "Europe/Berlin")
//	backup, err := jobs.Calendar(scheduler, nightly, save)
//	once, err := jobs.Calendar(scheduler, jobs.At(date), remind)
//	...
//	poll.Stop()
//
// # Two clocks
//
// [Periodic] follows the monotonic clock: when the time of day is set, the period stays
// the same. [Calendar] follows the wall clock: it runs a job of nine o'clock when the
// clock shows nine.
//
// With a virtual clock, give the Scheduler an executor.Inline. Otherwise Advance does
// not wait for the runs, and the job skips occurrences.
//
// # Guarantees
//
//   - No run is early.
//   - Runs of one job never overlap. After Stop no run begins.
//   - A run that panics does not end the series.
//
// # Concurrency
//
// Any goroutine may call any method, even from inside the job's function.
//
// # When not to use it
//
// A job ends with its process, and each process has its own. A job that several
// processes share, or that must survive them, belongs in package durable.
package jobs
