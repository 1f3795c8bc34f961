package api

import (
	"context"
	"math"
	"net/http"

	"github.com/tickless/tickless/durable"
)

// A Queue is a queue in the form of the API.
type Queue struct {
	Queue       string  `json:"queue,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"` // how many tasks run at a time, on all workers; 0: no limit
	Rate        float64 `json:"rate,omitempty"`        // how many tasks start in a second
	Paused      bool    `json:"paused,omitempty"`      // its tasks wait, on all workers
	Note        string  `json:"note,omitempty"`        // why it is paused
}

// Queues returns all queues.
func (a *API) Queues(ctx context.Context) ([]Queue, error) {
	limits, err := a.client.Limits(ctx)
	if err != nil {
		return nil, err
	}
	paused, err := a.client.PausedHandlers(ctx)
	if err != nil {
		return nil, err
	}
	queues := make([]Queue, len(a.queues))
	for i, name := range a.queues {
		queues[i] = queueOf(name, limits[name])
		if x, ok := paused[name]; ok {
			queues[i].Paused, queues[i].Note = true, x.Note
		}
	}
	return queues, nil
}

func queueOf(name string, l durable.Limit) Queue {
	return Queue{Queue: name, Concurrency: l.Concurrency, Rate: l.Rate}
}

// QueueByName returns a queue. Without it, the error is a Problem with the status 404.
func (a *API) QueueByName(ctx context.Context, name string) (Queue, error) {
	if !a.hasQueue(name) {
		return Queue{}, Problemf(http.StatusNotFound, "there is no queue %.80q", name)
	}
	queues, err := a.Queues(ctx)
	for _, q := range queues {
		if q.Queue == name {
			return q, err
		}
	}
	return Queue{}, err
}

// SetQueue sets a queue's limits, and pauses or resumes it.
func (a *API) SetQueue(ctx context.Context, q Queue) error {
	var p fieldErrors
	if q.Concurrency < 0 {
		p.add("/concurrency", "is negative")
	}
	if q.Rate < 0 || math.IsNaN(q.Rate) || math.IsInf(q.Rate, 0) {
		p.add("/rate", "is not a positive number")
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
	if a.client.Store().Shards() > 1 && q.Concurrency == 0 && q.Rate == 0 {
		return nil // such a store has no limits
	}
	return a.client.SetLimit(ctx, q.Queue, durable.Limit{Concurrency: q.Concurrency, Rate: q.Rate})
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
