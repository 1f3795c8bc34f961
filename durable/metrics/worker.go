package metrics

import (
	"fmt"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/metric"
)

// A WorkerOption changes how [Worker] makes a Source.
type WorkerOption interface{ apply(*workerConfig) }

type workerConfig struct{ together bool }

type workerOption func(*workerConfig)

func (f workerOption) apply(c *workerConfig) { f(c) }

// WithHandlersTogether exports the sums over all handlers of the Worker, with an empty
// label, in place of a number for each. The default is to tell them apart: there are as
// many as the program has given to [durable.Worker.Handle], whatever is scheduled.
func WithHandlersTogether() WorkerOption {
	return workerOption(func(c *workerConfig) { c.together = true })
}

// Worker is one Worker, whether it runs or not. It panics if the name is empty, or if w
// or an option is nil.
func Worker(name string, w *durable.Worker, opts ...WorkerOption) observe.Source {
	if w == nil {
		panic("metrics: Worker: nil Worker")
	}
	var config workerConfig
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("metrics: Worker: option %d is nil", i+1))
		}
		o.apply(&config)
	}
	return metric.One(metric.Workers, metric.Object{
		Name: name, ID: w,
		Read:  func() any { return readWorker(w, config.together) },
		Notes: func() []metric.Note { return notes(w) },
	})
}

func readWorker(w *durable.Worker, together bool) *metric.WorkerSample {
	st := w.Stats()
	s := &metric.WorkerSample{
		Places: st.Concurrency, Taken: st.Running,
		Unknown: st.Unknown, Claims: st.Claims, EmptyClaims: st.Empty, Errors: st.Errors, Wakeups: st.Wakeups,
	}
	if together {
		s.Handlers = make([]metric.Handler, 1)
	}
	for _, h := range w.HandlerStats() {
		m := metric.Handler{
			Name: h.Handler, Running: h.Running,
			Claimed: h.Claimed, Done: h.Done, Retried: h.Retried, Died: h.Died, Dropped: h.Dropped,
			Overtaken: h.Overtaken, Released: h.Released, Lost: h.Lost,
			Lateness: h.Lateness, Ran: h.Ran,
		}
		if together {
			s.Handlers[0].Add(&m)
		} else {
			s.Handlers = append(s.Handlers, m)
		}
	}
	return s
}

func notes(w *durable.Worker) (all []metric.Note) {
	for _, d := range w.RecentDead() {
		all = append(all, metric.Note{
			When: d.When, What: fmt.Sprintf("%s, key %.80q, attempt %d", d.Handler, d.Key, d.Attempt), Text: d.Error,
		})
	}
	return all
}
