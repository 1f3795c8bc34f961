package metrics

import (
	"fmt"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// Worker returns a Source for a Worker, running or not. Metrics of a handler have its
// name as a label. Worker panics if the name is empty or w is nil.
func Worker(name string, w *durable.Worker) observe.Source {
	if w == nil {
		panic("metrics: Worker: nil Worker")
	}
	return metric.One(workerMetrics, metric.Object{
		Name: name, ID: w,
		Read:  func() any { return workerSample{w.Stats(), w.HandlerStats()} },
		Notes: func() []metric.Note { return deadLetterNotes(w) },
	})
}

func deadLetterNotes(w *durable.Worker) (notes []metric.Note) {
	for _, d := range w.RecentDead() {
		notes = append(notes, metric.Note{
			When: d.When, What: fmt.Sprintf("%s, key %.80q, attempt %d", d.Handler, d.Key, d.Attempt), Text: d.Error,
		})
	}
	return notes
}

// A workerSample is the numbers of a Worker at one time.
type workerSample struct {
	durable.WorkerStats
	handlers []durable.HandlerStats
}

var workerMetrics = newWorkerMetrics()

func newWorkerMetrics() *metric.Thing {
	t := metric.NewTable[workerSample]("durable.worker", "worker").Titled("Durable worker").Noted("Latest dead letters")
	t.Add(metric.UpDownCounter, "places", "{handler}", "How many handlers may run at a time",
		func(s workerSample) float64 { return float64(s.Concurrency) })
	t.Add(metric.UpDownCounter, "taken", "{handler}", "Places in use by running handlers, and by tasks that are being claimed",
		func(s workerSample) float64 { return float64(s.Running) })
	t.Add(metric.UpDownCounter, "hanging", "{handler}", "Running handlers that have not returned after their timeout",
		func(s workerSample) float64 { return float64(s.Hanging) })
	addHandlerMetrics(t)
	addCounter := func(name, unit, help string, read func(s workerSample) int64) {
		t.Add(metric.Counter, name, unit, help, func(s workerSample) float64 { return float64(read(s)) })
	}
	addCounter("task.unknown", "{task}", "Claimed tasks that the Worker cannot run and leaves to other workers",
		func(s workerSample) int64 { return s.Unknown })
	addCounter("dead.purged", "{task}", "Dead letters purged because they were too old or too many",
		func(s workerSample) int64 { return s.Purged })
	addCounter("claims", "{claim}", "Claims sent", func(s workerSample) int64 { return s.Claims })
	addCounter("claims_empty", "{claim}", "Claims that got nothing", func(s workerSample) int64 { return s.Empty })
	addCounter("errors", "{error}", "Rounds of commands that failed or were not answered", func(s workerSample) int64 { return s.Errors })
	addCounter("wakeups", "{wakeup}", "Wake-ups for tasks that are due before the next claim", func(s workerSample) int64 { return s.Wakeups })
	return t.Thing()
}

func addHandlerMetrics(t metric.Table[workerSample]) {
	addPerHandler := func(kind metric.Kind, name, help string, read func(h *durable.HandlerStats) int64) {
		t.AddParts(kind, "attempt."+name, "{attempt}", "handler", help, func(s workerSample, yield func(string, float64)) {
			for i := range s.handlers {
				yield(s.handlers[i].Handler, float64(read(&s.handlers[i])))
			}
		})
	}
	addPerHandler(metric.UpDownCounter, "running", "Running handlers", func(h *durable.HandlerStats) int64 { return int64(h.Running) })
	for _, c := range []struct {
		name, help string
		read       func(h *durable.HandlerStats) int64
	}{
		{"claimed", "Attempts started", func(h *durable.HandlerStats) int64 { return h.Claimed }},
		{"done", "Attempts that succeeded", func(h *durable.HandlerStats) int64 { return h.Done }},
		{"retried", "Failed attempts that are retried", func(h *durable.HandlerStats) int64 { return h.Retried }},
		{"died", "Failed attempts after which the run is a dead letter", func(h *durable.HandlerStats) int64 { return h.Died }},
		{"dropped", "Runs that became dead letters without a call of the handler, because they were missed, damaged or out of attempts", func(h *durable.HandlerStats) int64 { return h.Dropped }},
		{"overtaken", "Failed attempts at tasks that were cancelled or scheduled again meanwhile, without a retry or a dead letter", func(h *durable.HandlerStats) int64 { return h.Overtaken }},
		{"overran", "Runs of repeating tasks that succeeded after the next run was due", func(h *durable.HandlerStats) int64 { return h.Overran }},
		{"released", "Attempts handed back", func(h *durable.HandlerStats) int64 { return h.Released }},
		{"lost", "Attempts whose lease was lost before they were reported", func(h *durable.HandlerStats) int64 { return h.Lost }},
	} {
		addPerHandler(metric.Counter, c.name, c.help, c.read)
	}
	addHistogram := func(name, help string, read func(h *durable.HandlerStats) timer.Histogram) {
		t.AddHistograms(name, "handler", help, func(s workerSample, yield func(string, timer.Histogram)) {
			for i := range s.handlers {
				yield(s.handlers[i].Handler, read(&s.handlers[i]))
			}
		})
	}
	addHistogram("attempt.lateness", "How long after a run was due its first attempt was claimed",
		func(h *durable.HandlerStats) timer.Histogram { return h.Lateness })
	addHistogram("attempt.duration", "How long handlers took",
		func(h *durable.HandlerStats) timer.Histogram { return h.Ran })
}
