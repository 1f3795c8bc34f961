package observe

import (
	"strconv"
	"time"

	"github.com/tickless/tickless/internal/metric"
	"github.com/tickless/tickless/timer"
)

// schedulerSample is what is read of a Scheduler.
type schedulerSample struct {
	timer.Stats
	levels   []timer.Level
	forecast []timer.Window
}

// within are the windows of the forecast, each from the beginning. The first is what is
// due already.
var within = []struct {
	label string
	until time.Duration
}{
	{"0s", 0},
	{"1s", time.Second},
	{"10s", 10 * time.Second},
	{"1m", time.Minute},
	{"10m", 10 * time.Minute},
	{"1h", time.Hour},
	{"24h", 24 * time.Hour},
}

func readScheduler(s *timer.Scheduler) *schedulerSample {
	untils := make([]time.Duration, len(within))
	for i, w := range within {
		untils[i] = w.until
	}
	return &schedulerSample{Stats: s.Stats(), levels: s.Levels(), forecast: s.Forecast(untils...)}
}

var schedulers = schedulerTable()

func schedulerTable() *metric.Thing {
	t := metric.NewTable[*schedulerSample]("scheduler", "scheduler").Titled("Scheduler")
	timersOf(t)
	machineryOf(t)
	callbacksOf(t)
	return t.Thing()
}

type schedulerMetrics = metric.Table[*schedulerSample]

// timersOf adds what becomes of timers.
func timersOf(t schedulerMetrics) {
	timers := func(name, help string, read func(*schedulerSample) uint64) {
		t.Add(metric.Counter, "timer."+name, "{timer}", help, func(s *schedulerSample) float64 { return float64(read(s)) })
	}
	timers("started", "Timers started, each tick of a ticker among them",
		func(s *schedulerSample) uint64 { return s.Started })
	timers("fired", "Timers that fired",
		func(s *schedulerSample) uint64 { return s.Fired })
	timers("stopped", "Timers stopped before they fired",
		func(s *schedulerSample) uint64 { return s.Stopped })
	timers("handed_back", "Timers that were pending when the Scheduler was closed",
		func(s *schedulerSample) uint64 { return s.HandedBack })
	timers("fallen_back", "Timers left to package time or to the clock, because too many were pending or their period is too short",
		func(s *schedulerSample) uint64 { return s.FellBack })
	t.AddParts(metric.Counter, "timer.rejected", "{timer}", "reason",
		"Timers not started, because too many were pending (full) or the Scheduler was closed (closed)",
		func(s *schedulerSample, yield func(string, float64)) {
			yield("full", float64(s.RejectedFull))
			yield("closed", float64(s.Rejected-min(s.RejectedFull, s.Rejected)))
		})
	t.Add(metric.UpDownCounter, "timer.pending", "{timer}", "Timers that have neither fired nor been stopped",
		func(s *schedulerSample) float64 { return float64(s.Pending) })
	t.AddParts(metric.Gauge, "timer.forecast", "{timer}", "within",
		"Pending timers that fall due within that time from now, an estimate if there are more than 2048; 0s are those due already",
		func(s *schedulerSample, yield func(string, float64)) {
			due := 0
			for i, w := range within {
				due += s.forecast[i].Timers
				yield(w.label, float64(due))
			}
		})
	t.AddHistogram("timer.lateness", "How long after their deadlines timers fired, slack not counted",
		func(s *schedulerSample) (timer.Histogram, bool) { return s.Lateness, true })
	t.AddParts(metric.Counter, "timer.late_time", "s", "cause",
		"The sum of the lateness of timers, by what they waited for: for the alarm, which is up to the machine, or for the poller, which was busy with other timers",
		func(s *schedulerSample, yield func(string, float64)) {
			yield("alarm", s.LateByAlarm.Seconds())
			yield("poller", s.LateByPoller.Seconds())
		})
	t.Add(metric.Counter, "timer.slack_used", "s", "By how much, in all, slack has put off timers that fired",
		func(s *schedulerSample) float64 { return s.SlackUsed.Seconds() })
}

// machineryOf adds what wakes up for timers, and what holds them.
func machineryOf(t schedulerMetrics) {
	t.AddHistogram("alarm.lateness", "How late the alarm rang that wakes the poller",
		func(s *schedulerSample) (timer.Histogram, bool) { return s.AlarmLateness, true })
	t.AddParts(metric.Counter, "poller.wakeups", "{wakeup}", "result",
		"Wake-ups of the poller, by whether it then fired or moved timers (work) or found nothing to do (nothing)",
		func(s *schedulerSample, yield func(string, float64)) {
			yield("work", float64(s.Wakeups-min(s.EmptyWakeups, s.Wakeups)))
			yield("nothing", float64(s.EmptyWakeups))
		})
	levels := func(kind metric.Kind, name, unit, help string, read func(timer.Level) float64) {
		t.AddParts(kind, "wheel."+name, unit, "level", help, func(s *schedulerSample, yield func(string, float64)) {
			for i, l := range s.levels {
				yield(strconv.Itoa(i), read(l))
			}
		})
	}
	levels(metric.Counter, "cascades", "{timer}", "Moves of a timer from that level of the wheel to a lower one",
		func(l timer.Level) float64 { return float64(l.Cascaded) })
	levels(metric.Gauge, "timers", "{timer}", "Timers on that level of the wheel, an estimate if more than 2048 are pending",
		func(l timer.Level) float64 { return float64(l.Timers) })
	levels(metric.UpDownCounter, "slots", "{slot}", "Slots of that level of the wheel that are in the delay queue, all shards taken together",
		func(l timer.Level) (n float64) {
			for _, shards := range l.Queued {
				n += float64(shards)
			}
			return n
		})
}

// callbacksOf adds what becomes of the callbacks of timers that fired.
func callbacksOf(t schedulerMetrics) {
	add := func(kind metric.Kind, name, unit, help string, read func(*schedulerSample) float64) {
		t.Add(kind, name, unit, help, read)
	}
	callbacks := func(name, help string, read func(*schedulerSample) uint64) {
		add(metric.Counter, name, "{callback}", help, func(s *schedulerSample) float64 { return float64(read(s)) })
	}
	now := func(name, unit, help string, read func(*schedulerSample) int) {
		add(metric.UpDownCounter, name, unit, help, func(s *schedulerSample) float64 { return float64(read(s)) })
	}
	callbacks("callback.dropped", "Callbacks of timers that fired which the executor refused",
		func(s *schedulerSample) uint64 { return s.Dropped })
	callbacks("callback.panicked", "Callbacks that panicked",
		func(s *schedulerSample) uint64 { return s.Panicked })
	now("callback.queued", "{callback}", "Callbacks that wait to be handed to an executor that blocks",
		func(s *schedulerSample) int { return s.Queued })
	t.AddParts(metric.UpDownCounter, "callback.running", "{callback}", "",
		"Callbacks that run, if the Scheduler has WithCallbackTimes",
		func(s *schedulerSample, yield func(string, float64)) {
			if s.Callbacks != nil {
				yield("", float64(s.Callbacks.Running))
			}
		})
	t.AddHistogram("callback.wait_time", "How long callbacks waited in the executor before they began, if the Scheduler has WithCallbackTimes",
		func(s *schedulerSample) (h timer.Histogram, ok bool) {
			if s.Callbacks == nil {
				return h, false
			}
			return s.Callbacks.Waited, true
		})
	t.AddHistogram("callback.run_time", "How long callbacks took, if the Scheduler has WithCallbackTimes",
		func(s *schedulerSample) (h timer.Histogram, ok bool) {
			if s.Callbacks == nil {
				return h, false
			}
			return s.Callbacks.Ran, true
		})
	callbacks("executor.submitted", "Callbacks that the executor accepted",
		func(s *schedulerSample) uint64 { return s.Executor.Submitted })
	callbacks("executor.finished", "Callbacks that the executor has run to their end",
		func(s *schedulerSample) uint64 { return s.Executor.Run })
	callbacks("executor.panicked", "Callbacks in the executor that panicked",
		func(s *schedulerSample) uint64 { return s.Executor.Panicked })
	callbacks("executor.rejected", "Callbacks that the executor refused",
		func(s *schedulerSample) uint64 { return s.Executor.Rejected })
	callbacks("executor.caller_ran", "Callbacks that ran on the goroutine that submitted them, because the executor was full",
		func(s *schedulerSample) uint64 { return s.Executor.CallerRan })
	now("executor.queued", "{callback}", "Callbacks that wait in the executor",
		func(s *schedulerSample) int { return s.Executor.Queued })
	now("executor.running", "{callback}", "Callbacks that run in the executor",
		func(s *schedulerSample) int { return s.Executor.Running })
	now("executor.workers", "{worker}", "Goroutines of the executor",
		func(s *schedulerSample) int { return s.Executor.Workers })
	add(metric.Gauge, "executor.peak_workers", "{worker}", "The most goroutines that the executor has had at a time",
		func(s *schedulerSample) float64 { return float64(s.Executor.PeakWorkers) })
}
