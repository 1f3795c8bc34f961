package observe

import (
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

var schedulerThing = func() *metric.Thing {
	t := metric.NewTable[timer.Stats]("scheduler", "scheduler").Titled("Scheduler")

	// Timers.
	add(t, metric.Counter, "timer.started", "{timer}", "Timers started; each tick of a ticker counts",
		func(s timer.Stats) uint64 { return s.Started })
	add(t, metric.Counter, "timer.fired", "{timer}", "Timers that fired",
		func(s timer.Stats) uint64 { return s.Fired })
	add(t, metric.Counter, "timer.stopped", "{timer}", "Timers stopped before they fired",
		func(s timer.Stats) uint64 { return s.Stopped })
	add(t, metric.Counter, "timer.handed_back", "{timer}", "Timers that were pending when the Scheduler was closed",
		func(s timer.Stats) uint64 { return s.HandedBack })
	add(t, metric.Counter, "timer.fallen_back", "{timer}", "Timers that use package time or an alarm of the clock: started after Close, or tickers with a period shorter than a tick",
		func(s timer.Stats) uint64 { return s.FellBack })
	t.AddParts(metric.Counter, "timer.rejected", "{timer}", "reason",
		"Timers not started, because too many were pending (full) or the Scheduler was closed (closed)",
		func(s timer.Stats, yield func(string, float64)) {
			yield("full", float64(s.RejectedFull))
			yield("closed", float64(s.Rejected-min(s.RejectedFull, s.Rejected)))
		})
	add(t, metric.UpDownCounter, "timer.pending", "{timer}", "Timers that have neither fired nor been stopped",
		func(s timer.Stats) int { return s.Pending })
	t.AddHistograms("timer.lateness", "", "How long after their deadlines timers fired; slack does not count",
		func(s timer.Stats, yield func(string, timer.Histogram)) { yield("", s.Lateness) })

	// The poller and the wheel.
	t.AddParts(metric.Counter, "poller.wakeups", "{wakeup}", "result",
		"Wake-ups of the poller after which it fired or moved timers (work) or had nothing to do (nothing)",
		func(s timer.Stats, yield func(string, float64)) {
			yield("work", float64(s.Wakeups-min(s.EmptyWakeups, s.Wakeups)))
			yield("nothing", float64(s.EmptyWakeups))
		})
	add(t, metric.Counter, "wheel.cascades", "{timer}", "Moves of a timer to a lower level of the wheel",
		func(s timer.Stats) uint64 { return s.Cascaded })

	// The callbacks of fired timers.
	add(t, metric.Counter, "callback.refused", "{callback}", "Callbacks that the executor refused; each ran on its own goroutine",
		func(s timer.Stats) uint64 { return s.Refused })
	add(t, metric.Counter, "callback.panicked", "{callback}", "Callbacks that panicked",
		func(s timer.Stats) uint64 { return s.Panicked })
	add(t, metric.UpDownCounter, "callback.queued", "{callback}", "Callbacks that wait until the poller submits them to the executor",
		func(s timer.Stats) int { return s.Queued })
	add(t, metric.Counter, "executor.submitted", "{callback}", "Callbacks that the executor accepted",
		func(s timer.Stats) uint64 { return s.Executor.Submitted })
	add(t, metric.Counter, "executor.finished", "{callback}", "Callbacks that have ended in the executor",
		func(s timer.Stats) uint64 { return s.Executor.Run })
	add(t, metric.Counter, "executor.panicked", "{callback}", "Callbacks in the executor that panicked",
		func(s timer.Stats) uint64 { return s.Executor.Panicked })
	add(t, metric.Counter, "executor.rejected", "{callback}", "Callbacks that the executor refused",
		func(s timer.Stats) uint64 { return s.Executor.Rejected })
	add(t, metric.UpDownCounter, "executor.queued", "{callback}", "Callbacks that wait in the executor",
		func(s timer.Stats) int { return s.Executor.Queued })
	add(t, metric.UpDownCounter, "executor.running", "{callback}", "Callbacks that run in the executor",
		func(s timer.Stats) int { return s.Executor.Running })
	add(t, metric.UpDownCounter, "executor.workers", "{worker}", "Goroutines of the executor",
		func(s timer.Stats) int { return s.Executor.Workers })
	add(t, metric.Gauge, "executor.peak_workers", "{worker}", "The largest number of goroutines that the executor has had",
		func(s timer.Stats) int { return s.Executor.PeakWorkers })
	return t.Thing()
}()
