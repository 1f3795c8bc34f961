package observe

import (
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

var schedulerThing = newSchedulerThing()

func newSchedulerThing() *metric.Thing {
	t := metric.NewTable[timer.Stats]("scheduler", "scheduler").Titled("Scheduler")
	addTimerMetrics(t)
	addPollerMetrics(t)
	addCallbackMetrics(t)
	return t.Thing()
}

// addTimerMetrics adds the metrics about timers.
func addTimerMetrics(t metric.Table[timer.Stats]) {
	addTimerCounter := func(name, help string, read func(timer.Stats) uint64) {
		t.Add(metric.Counter, "timer."+name, "{timer}", help, func(s timer.Stats) float64 { return float64(read(s)) })
	}
	addTimerCounter("started", "Timers started; each tick of a ticker counts",
		func(s timer.Stats) uint64 { return s.Started })
	addTimerCounter("fired", "Timers that fired",
		func(s timer.Stats) uint64 { return s.Fired })
	addTimerCounter("stopped", "Timers stopped before they fired",
		func(s timer.Stats) uint64 { return s.Stopped })
	addTimerCounter("handed_back", "Timers that were pending when the Scheduler was closed",
		func(s timer.Stats) uint64 { return s.HandedBack })
	addTimerCounter("fallen_back", "Timers that use package time or an alarm of the clock: started after Close, or tickers with a period shorter than a tick",
		func(s timer.Stats) uint64 { return s.FellBack })
	t.AddParts(metric.Counter, "timer.rejected", "{timer}", "reason",
		"Timers not started, because too many were pending (full) or the Scheduler was closed (closed)",
		func(s timer.Stats, yield func(string, float64)) {
			yield("full", float64(s.RejectedFull))
			yield("closed", float64(s.Rejected-min(s.RejectedFull, s.Rejected)))
		})
	t.Add(metric.UpDownCounter, "timer.pending", "{timer}", "Timers that have neither fired nor been stopped",
		func(s timer.Stats) float64 { return float64(s.Pending) })
	t.AddHistogram("timer.lateness", "How long after their deadlines timers fired; slack does not count",
		func(s timer.Stats) (timer.Histogram, bool) { return s.Lateness, true })
}

// addPollerMetrics adds the metrics about the poller and the wheel.
func addPollerMetrics(t metric.Table[timer.Stats]) {
	t.AddParts(metric.Counter, "poller.wakeups", "{wakeup}", "result",
		"Wake-ups of the poller after which it fired or moved timers (work) or had nothing to do (nothing)",
		func(s timer.Stats, yield func(string, float64)) {
			yield("work", float64(s.Wakeups-min(s.EmptyWakeups, s.Wakeups)))
			yield("nothing", float64(s.EmptyWakeups))
		})
	t.Add(metric.Counter, "wheel.cascades", "{timer}", "Moves of a timer to a lower level of the wheel",
		func(s timer.Stats) float64 { return float64(s.Cascaded) })
}

// addCallbackMetrics adds the metrics about the callbacks of fired timers.
func addCallbackMetrics(t metric.Table[timer.Stats]) {
	addCallbackCounter := func(name, help string, read func(timer.Stats) uint64) {
		t.Add(metric.Counter, name, "{callback}", help, func(s timer.Stats) float64 { return float64(read(s)) })
	}
	addUpDownCounter := func(name, unit, help string, read func(timer.Stats) int) {
		t.Add(metric.UpDownCounter, name, unit, help, func(s timer.Stats) float64 { return float64(read(s)) })
	}
	addCallbackCounter("callback.refused", "Callbacks that the executor refused; each ran on its own goroutine",
		func(s timer.Stats) uint64 { return s.Refused })
	addCallbackCounter("callback.panicked", "Callbacks that panicked",
		func(s timer.Stats) uint64 { return s.Panicked })
	addUpDownCounter("callback.queued", "{callback}", "Callbacks that wait until the poller submits them to the executor",
		func(s timer.Stats) int { return s.Queued })
	addCallbackCounter("executor.submitted", "Callbacks that the executor accepted",
		func(s timer.Stats) uint64 { return s.Executor.Submitted })
	addCallbackCounter("executor.finished", "Callbacks that have ended in the executor",
		func(s timer.Stats) uint64 { return s.Executor.Run })
	addCallbackCounter("executor.panicked", "Callbacks in the executor that panicked",
		func(s timer.Stats) uint64 { return s.Executor.Panicked })
	addCallbackCounter("executor.rejected", "Callbacks that the executor refused",
		func(s timer.Stats) uint64 { return s.Executor.Rejected })
	addUpDownCounter("executor.queued", "{callback}", "Callbacks that wait in the executor",
		func(s timer.Stats) int { return s.Executor.Queued })
	addUpDownCounter("executor.running", "{callback}", "Callbacks that run in the executor",
		func(s timer.Stats) int { return s.Executor.Running })
	addUpDownCounter("executor.workers", "{worker}", "Goroutines of the executor",
		func(s timer.Stats) int { return s.Executor.Workers })
	t.Add(metric.Gauge, "executor.peak_workers", "{worker}", "The largest number of goroutines that the executor has had",
		func(s timer.Stats) float64 { return float64(s.Executor.PeakWorkers) })
}
