package api

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/tickless/tickless/durable"
)

// A Queue is a queue in the form of the API.
type Queue struct {
	Queue       string  `json:"queue,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"` // how many tasks run at a time, on all workers; 0: no limit
	Rate        float64 `json:"rate,omitempty"`        // how many tasks start in a second
	// ByGroup has the limits of each group of tasks; nil: none.
	ByGroup *GroupLimit `json:"by_group,omitempty"`
	Paused  bool        `json:"paused,omitempty"` // its tasks wait, on all workers
	Note    string      `json:"note,omitempty"`   // why it is paused
	// Since is when it was paused. A PUT ignores it.
	Since time.Time `json:"since,omitzero"`
}

// A GroupLimit limits the tasks of each group of a queue, like a Queue its own tasks.
type GroupLimit struct {
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
}

// Queues returns all queues: those of WithQueues, and others of the store that are paused or have
// limits. Another program may have made these, or this service when it had other queues.
func (a *API) Queues(ctx context.Context) ([]Queue, error) {
	limits, err := a.client.Limits(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := a.client.PausedHandlers(ctx)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(a.queues)
	others := slices.AppendSeq(slices.Collect(maps.Keys(limits)), maps.Keys(paused))
	slices.Sort(others)
	for _, name := range others {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	queues := make([]Queue, len(names))
	for i, name := range names {
		queues[i] = queueOf(name, limits[name])
		if x, ok := paused[name]; ok {
			queues[i].Paused, queues[i].Note, queues[i].Since = true, x.Note, x.Since
		}
	}
	return queues, nil
}

func queueOf(name string, l durable.Limit) Queue {
	q := Queue{Queue: name, Concurrency: l.Concurrency, Rate: l.Rate}
	if l.GroupConcurrency != 0 || l.GroupRate != 0 {
		q.ByGroup = &GroupLimit{l.GroupConcurrency, l.GroupRate}
	}
	return q
}

// QueueByName returns a queue. Without it, the error is a Problem with the status 404.
func (a *API) QueueByName(ctx context.Context, name string) (Queue, error) {
	queues, err := a.Queues(ctx)
	if err != nil {
		return Queue{}, err
	}
	for _, q := range queues {
		if q.Queue == name {
			return q, nil
		}
	}
	return Queue{}, Problemf(http.StatusNotFound, "there is no queue %.80q", name)
}

// SetQueue sets a queue's limits, and pauses or resumes it.
func (a *API) SetQueue(ctx context.Context, q Queue) error {
	var p fieldErrors
	check := func(at string, concurrency int, rate float64) {
		if concurrency < 0 {
			p.add(at+"/concurrency", "is negative")
		}
		if rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
			p.add(at+"/rate", "is not a positive number")
		}
	}
	limit := durable.Limit{Concurrency: q.Concurrency, Rate: q.Rate}
	check("", q.Concurrency, q.Rate)
	if g := q.ByGroup; g != nil {
		check("/by_group", g.Concurrency, g.Rate)
		limit.GroupConcurrency, limit.GroupRate = g.Concurrency, g.Rate
	}
	if q.Note != "" && !q.Paused {
		p.add("/note", "is only for a paused queue")
	}
	if err := p.err(); err != nil {
		return err
	}
	if q.Paused {
		if err := a.client.PauseHandler(ctx, q.Queue, q.Note); err != nil {
			return err
		}
	} else if err := a.client.ResumeHandler(ctx, q.Queue); err != nil {
		return err
	}
	if a.client.Store().Shards() > 1 && limit == (durable.Limit{}) {
		return nil // such a store has no limits
	}
	return a.client.SetLimit(ctx, q.Queue, limit)
}

func (a *API) listQueues(w http.ResponseWriter, r *http.Request) error {
	queues, err := a.Queues(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"queues": queues})
	return nil
}

func (a *API) getQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := a.QueueByName(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, q)
	return nil
}

func (a *API) putQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := a.QueueByName(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	b, err := readBody(w, r, maxTask)
	if err != nil {
		return err
	}
	name := q.Queue
	q = Queue{}
	if err := decodeStrict(b, &q); err != nil {
		return err
	}
	if q.Queue != "" && q.Queue != name {
		return Problemf(http.StatusUnprocessableEntity, "the queues in the path and in the body differ")
	}
	q.Queue = name
	return a.answerQueue(w, r, "set queue", q)
}

func (a *API) deleteQueue(w http.ResponseWriter, r *http.Request) error {
	q, err := a.QueueByName(r.Context(), r.PathValue("queue"))
	if err != nil {
		return err
	}
	return a.answerQueue(w, r, "reset queue", Queue{Queue: q.Queue})
}

func (a *API) answerQueue(w http.ResponseWriter, r *http.Request, action string, q Queue) error {
	if err := a.SetQueue(r.Context(), q); err != nil {
		return err
	}
	a.audit(r.Context(), action, q.Queue, 0)
	writeJSON(w, http.StatusOK, q)
	return nil
}
