package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tickless/tickless/durable"
)

// moveRepeating moves the next run of a repeating task: the patch has a delay or a time.
func (a *API) moveRepeating(ctx context.Context, info *durable.Info, patch map[string]json.RawMessage) (durable.Outcome, error) {
	if len(patch) != 1 {
		return 0, Problemf(http.StatusUnprocessableEntity, "move the next run of a repeating task with delay or at alone")
	}
	b, err := json.Marshal(patch)
	if err != nil {
		return 0, err
	}
	var x struct {
		Delay *Duration  `json:"delay"`
		At    *time.Time `json:"at"`
	}
	if err := decodeStrict(b, &x); err != nil {
		return 0, err
	}
	when := durable.After(0)
	switch {
	case x.Delay != nil:
		when = durable.After(time.Duration(*x.Delay))
	case x.At != nil:
		when = durable.At(*x.At)
	}
	outcome, err := a.client.Reschedule(ctx, info.ID, when, durable.IfVersion(info.Version))
	return again(ctx, outcome, err)
}

func (a *API) deleteTask(w http.ResponseWriter, r *http.Request) error {
	key := keyOf(r)
	version, err := a.ifMatch(r)
	if err != nil {
		return err
	}
	outcome, err := a.client.Cancel(r.Context(), key, ifVersion(version)...)
	if outcome, err = again(r.Context(), outcome, err); err != nil {
		return err
	}
	if outcome == durable.Absent { // a dead letter is not cancelled, but removed
		purged, err := a.client.Purge(r.Context(), key, ifVersion(version)...)
		if purged, err = again(r.Context(), purged, err); err != nil {
			return err
		}
		outcome = purged
	}
	switch outcome {
	case durable.Removed:
		a.audit(r.Context(), "delete", key, 1)
		w.WriteHeader(http.StatusNoContent)
	case durable.Stopping:
		a.audit(r.Context(), "delete", key, 1)
		writeJSON(w, http.StatusAccepted, outcomeAnswer{Task{Key: key, State: "running"}, outcome.String()})
	case durable.Changed:
		return errChanged
	default:
		if version != 0 {
			return errChanged
		}
		return durable.ErrNotFound
	}
	return nil
}

// runTask makes a pending task due now.
func (a *API) runTask(w http.ResponseWriter, r *http.Request) error {
	outcome, err := a.RunNow(r.Context(), keyOf(r))
	return a.answerMoved(w, r, "run", outcome, err)
}

// RunNow makes a pending task due now. A paused task runs once: the outcome is then Once. For a
// task in another state the outcome is Absent.
func (a *API) RunNow(ctx context.Context, key string) (durable.Outcome, error) {
	info, err := a.client.Get(ctx, key)
	switch {
	case errors.Is(err, durable.ErrNotFound) || err == nil && info.State != durable.Pending:
		return durable.Absent, nil
	case err != nil:
		return durable.Unknown, err
	}
	return a.client.Reschedule(ctx, key, durable.After(0))
}

func (a *API) requeueTask(w http.ResponseWriter, r *http.Request) error {
	outcome, err := a.client.Requeue(r.Context(), keyOf(r), durable.After(0))
	return a.answerMoved(w, r, "requeue", outcome, err)
}

// failedText says why a task whose state is failed cannot run again.
const failedText = "the task has failed, and has no dead letter"

func (a *API) answerMoved(w http.ResponseWriter, r *http.Request, action string, outcome durable.Outcome, err error) error {
	if outcome, err = again(r.Context(), outcome, err); err != nil {
		return err
	}
	if outcome == durable.Absent {
		info, err := a.Find(r.Context(), keyOf(r))
		if err != nil {
			return err
		}
		if failed(&info) {
			return Problemf(http.StatusConflict, failedText)
		}
		t := TaskOf(&info)
		return Problemf(http.StatusConflict, "the task is %s", t.State)
	}
	a.audit(r.Context(), action, keyOf(r), 1)
	return a.answerTask(w, r, keyOf(r), outcome)
}

// A Run is a finished run in the form of the API.
type Run struct {
	Key      string            `json:"key"`
	Queue    string            `json:"queue"`
	State    string            `json:"state"` // done or dead
	Due      time.Time         `json:"due"`
	Began    *time.Time        `json:"began,omitempty"`
	Ended    time.Time         `json:"ended"`
	Attempts int               `json:"attempts"`
	Failures []durable.Failure `json:"failures,omitempty"`
	// Answer is what the receiver answered, if the task is a callback.
	Answer json.RawMessage `json:"answer,omitempty"`
}

func runOf(x *durable.Run) Run {
	r := Run{Key: x.Key, Queue: x.Handler, State: "dead", Due: x.Due, Ended: x.Ended, Attempts: x.Attempts, Failures: x.Failures}
	if x.Done {
		r.State = "done"
	}
	if !x.Began.IsZero() {
		r.Began = &x.Began
	}
	if json.Valid(x.Result) {
		r.Answer = x.Result
	}
	return r
}

func (a *API) taskRuns(w http.ResponseWriter, r *http.Request) error {
	runs, err := a.client.Runs(r.Context(), keyOf(r))
	if err != nil {
		return err
	}
	out := make([]Run, len(runs))
	for i := range runs {
		out[i] = runOf(&runs[i])
	}
	if len(out) == 0 {
		if _, err := a.client.Get(r.Context(), keyOf(r)); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"runs": out})
	return nil
}
