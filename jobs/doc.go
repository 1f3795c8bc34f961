// Package jobs runs functions repeatedly: with a period, or by the calendar.
//
// # Usage
//
//	poll, err := jobs.Periodic(scheduler, 10*time.Second, fetch)
//	backup, err := jobs.Calendar(scheduler, schedule, save)   // a Cron, or any other Schedule
//	once, err := jobs.Calendar(scheduler, jobs.At(date), remind)
//	...
//	poll.Stop()
//
// # Two clocks
//
// [Periodic] follows the monotonic clock: the period stays the same when the time of day
// is set. [Calendar] follows the wall clock: nine o'clock is when the clock shows nine,
// even after the clock was set.
//
// On a virtual clock, give the Scheduler an executor.Inline. Otherwise an Advance past
// several occurrences does not wait for the runs, and misses occurrences.
//
// # Guarantees
//
//   - No run is early, by the clock that the job follows.
//   - Runs of one job never overlap. After Stop no run begins.
//   - A run that panics does not end the series.
//
// # Concurrency
//
// Any goroutine may call any method, even from inside the job's function.
//
// # When not to use it
//
// A series ends with its process, and each process has its own series. A series that
// several processes share, or that must survive them, belongs in package durable.
package jobs
