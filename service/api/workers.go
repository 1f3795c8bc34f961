package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tickless/tickless/durable"
)

// A Worker is a worker in the form of the API: see durable.WorkerInfo.
type Worker struct {
	ID      string        `json:"id"`
	Name    string        `json:"name,omitempty"`
	Host    string        `json:"host,omitempty"`
	PID     int           `json:"pid,omitempty"`
	Started time.Time     `json:"started,omitzero"`
	Version string        `json:"version,omitempty"`
	Contact time.Time     `json:"contact"` // when the store last heard of it
	Lost    bool          `json:"lost,omitempty"`
	Places  int           `json:"places"`
	Lease   Duration      `json:"lease"`
	Queues  []WorkerQueue `json:"queues"`
	Running []RunningTask `json:"running"`
}

// A WorkerQueue is a queue of a worker. Places and Rate are the worker's own limits; 0 means
// none.
type WorkerQueue struct {
	Queue   string  `json:"queue"`
	Running int     `json:"running"`
	Places  int     `json:"places,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
}

// A RunningTask is a task that a worker runs. Worker is absent in a Worker.
type RunningTask struct {
	Key    string    `json:"key"`
	Queue  string    `json:"queue"`
	Worker string    `json:"worker,omitempty"`
	Since  time.Time `json:"since"`
	Lease  time.Time `json:"lease"` // when its lease ends, unless the worker extends it
}

func runningTaskOf(t *durable.WorkerTask, worker string) RunningTask {
	return RunningTask{t.ID, t.Handler, worker, t.Since, t.Lease}
}

// Workers returns all workers.
func (a *API) Workers(ctx context.Context) ([]Worker, error) {
	infos, err := a.client.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, len(infos))
	for i, x := range infos {
		w := Worker{x.ID, x.Name, x.Host, x.PID, x.Started, x.Version, x.Contact, x.Lost, x.Places, Duration(x.Lease), []WorkerQueue{}, []RunningTask{}}
		for _, h := range x.Handlers {
			w.Queues = append(w.Queues, WorkerQueue{h.Handler, h.Running, h.Places, h.Rate})
		}
		for j := range x.Running {
			w.Running = append(w.Running, runningTaskOf(&x.Running[j], ""))
		}
		workers[i] = w
	}
	return workers, nil
}

func (a *API) listWorkers(w http.ResponseWriter, r *http.Request) error {
	workers, err := a.Workers(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"workers": workers})
	return nil
}

// An Explanation says why a task does not run: see durable.Explanation.
type Explanation struct {
	Key     string    `json:"key"`
	State   string    `json:"state"`
	Now     time.Time `json:"now"`
	Reasons []Reason  `json:"reasons"`
}

// A Reason is one of the things that keep a task from running: a durable.Reason whose Holders have
// the form of the API.
type Reason struct {
	durable.Reason
	Holders []RunningTask `json:"holders,omitempty"`
}

// Explain says why a task does not run. A task that is done may have a run that is kept.
func (a *API) Explain(ctx context.Context, key string) (Explanation, error) {
	info, err := a.Find(ctx, key)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Key: key, State: TaskOf(&info).State, Now: time.Now(), Reasons: []Reason{}}
	x, err := a.client.Explain(ctx, key)
	switch {
	case errors.Is(err, durable.ErrNotFound):
		reason := durable.Reason{Kind: durable.ReasonPast, Text: "the task is done"}
		if failed(&info) {
			reason.Text, reason.Note = failedText, TaskOf(&info).LastError
		}
		e.Reasons = append(e.Reasons, Reason{Reason: reason})
		return e, nil
	case err != nil:
		return Explanation{}, err
	}
	e.Now = x.Now
	for _, r := range x.Reasons {
		reason := Reason{Reason: r}
		for i := range r.Holders {
			reason.Holders = append(reason.Holders, runningTaskOf(&r.Holders[i].WorkerTask, r.Holders[i].Worker))
		}
		e.Reasons = append(e.Reasons, reason)
	}
	return e, nil
}

func (a *API) explainTask(w http.ResponseWriter, r *http.Request) error {
	e, err := a.Explain(r.Context(), keyOf(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e)
	return nil
}
