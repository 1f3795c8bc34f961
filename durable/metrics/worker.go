package metrics

import (
	"fmt"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// Worker returns a Source for a Worker, whether it is running or not. The metrics of
// its handlers have a label with the handler's name, so their number is that of the
// handlers registered with [durable.Worker.Handle]. It panics if the name is empty or w
// is nil.
func Worker(name string, w *durable.Worker) observe.Source {
	if w == nil {
		panic("metrics: Worker: nil Worker")
	}
	return metric.One(workers, metric.Object{
		Name: name, ID: w,
		Read:  func() any { return workerSample{w.Stats(), w.HandlerStats()} },
		Notes: func() []metric.Note { return notes(w) },
	})
}

func notes(w *durable.Worker) (all []metric.Note) {
	for _, d := range w.RecentDead() {
		all = append(all, metric.Note{
			When: d.When, What: fmt.Sprintf("%s, key %.80q, attempt %d", d.Handler, d.Key, d.Attempt), Text: d.Error,
		})
	}
	return all
}

// A workerSample is one reading of a Worker.
type workerSample struct {
	durable.WorkerStats
	handlers []durable.HandlerStats
}

var workers = workerTable()

func workerTable() *metric.Thing {
	t := metric.NewTable[workerSample]("durable.worker", "worker").Titled("Durable worker").Noted("Latest dead letters")
	t.Add(metric.UpDownCounter, "places", "{handler}", "How many handlers may run at a time",
		func(s workerSample) float64 { return float64(s.Concurrency) })
	t.Add(metric.UpDownCounter, "taken", "{handler}", "Places of handlers under way, and of tasks that are being claimed",
		func(s workerSample) float64 { return float64(s.Running) })
	addHandlers(t)
	number := func(name, unit, help string, read func(s workerSample) int64) {
		t.Add(metric.Counter, name, unit, help, func(s workerSample) float64 { return float64(read(s)) })
	}
	number("task.unknown", "{task}", "Tasks claimed that the Worker does not know how to run, and left to others",
		func(s workerSample) int64 { return s.Unknown })
	number("dead.purged", "{task}", "Dead letters purged since they were too old or too many",
		func(s workerSample) int64 { return s.Purged })
	number("claims", "{claim}", "Claims sent", func(s workerSample) int64 { return s.Claims })
	number("claims_empty", "{claim}", "Claims that got nothing", func(s workerSample) int64 { return s.Empty })
	number("errors", "{error}", "Rounds of commands that failed or were not answered", func(s workerSample) int64 { return s.Errors })
	number("wakeups", "{wakeup}", "Wake-ups for tasks that were scheduled before the next", func(s workerSample) int64 { return s.Wakeups })
	return t.Thing()
}

// addHandlers adds the metrics of the handlers.
func addHandlers(t metric.Table[workerSample]) {
	parts := func(kind metric.Kind, name, help string, read func(h *durable.HandlerStats) int64) {
		t.AddParts(kind, "attempt."+name, "{attempt}", "handler", help, func(s workerSample, yield func(string, float64)) {
			for i := range s.handlers {
				yield(s.handlers[i].Handler, float64(read(&s.handlers[i])))
			}
		})
	}
	parts(metric.UpDownCounter, "running", "Handlers under way", func(h *durable.HandlerStats) int64 { return int64(h.Running) })
	for _, c := range []struct {
		name, help string
		read       func(h *durable.HandlerStats) int64
	}{
		{"claimed", "Attempts started", func(h *durable.HandlerStats) int64 { return h.Claimed }},
		{"done", "Attempts that ended well", func(h *durable.HandlerStats) int64 { return h.Done }},
		{"retried", "Attempts that failed and are followed by another", func(h *durable.HandlerStats) int64 { return h.Retried }},
		{"died", "Attempts that failed, after which the run is a dead letter", func(h *durable.HandlerStats) int64 { return h.Died }},
		{"dropped", "Runs that became dead letters without the handler, because they were missed, damaged or out of attempts", func(h *durable.HandlerStats) int64 { return h.Dropped }},
		{"overtaken", "Attempts that failed when their tasks had been cancelled, or scheduled again, so that no retry and no dead letter follows", func(h *durable.HandlerStats) int64 { return h.Overtaken }},
		{"overran", "Runs of repeating tasks that went well, but ended when the next one was due already", func(h *durable.HandlerStats) int64 { return h.Overran }},
		{"released", "Attempts handed back", func(h *durable.HandlerStats) int64 { return h.Released }},
		{"lost", "Attempts whose lease was lost before they were reported", func(h *durable.HandlerStats) int64 { return h.Lost }},
	} {
		parts(metric.Counter, c.name, c.help, c.read)
	}
	histograms := func(name, help string, read func(h *durable.HandlerStats) timer.Histogram) {
		t.AddHistograms(name, "handler", help, func(s workerSample, yield func(string, timer.Histogram)) {
			for i := range s.handlers {
				yield(s.handlers[i].Handler, read(&s.handlers[i]))
			}
		})
	}
	histograms("attempt.lateness", "How long after a run was due the attempt was claimed with which it began",
		func(h *durable.HandlerStats) timer.Histogram { return h.Lateness })
	histograms("attempt.duration", "How long handlers took",
		func(h *durable.HandlerStats) timer.Histogram { return h.Ran })
}
