package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A task has one State: [Pending], [Running] or [Dead]. A finished run that is kept is
// [Past].
type State = store.State

const (
	Pending = store.Pending // waits for its time or its next attempt
	Running = store.Running // a worker has a lease on the task
	Dead    = store.Dead    // a dead letter
	Past    = store.Past    // a finished run that is kept: see Retention
)

// Info describes a task and its state.
type Info struct {
	// ID identifies the task for [Client.Get], [Client.Reschedule] and [Client.Cancel].
	// It is the key, except for follow-ups, and a repeating task's dead letter and requeued
	// run: their IDs begin with the key and a NUL.
	ID   string `json:"id"`
	Task Task   `json:"task"`
	// Version is the number of the task's latest change by a command. Attempts do not change it:
	// see [IfVersion]. It is 0 if State is Past.
	Version int64 `json:"version,omitempty"`
	State   State `json:"state"` // in JSON "pending", "running", "dead" or "past"
	// At depends on State:
	//   - Pending: when the task runs next
	//   - Running: when its lease ends
	//   - Dead: when the run failed for good
	//   - Past: until when the run is kept
	//
	// A paused task keeps its time. At is zero, and absent in JSON, if that time never comes:
	// for example if the run is kept until newer ones replace it.
	At time.Time `json:"at,omitzero"`
	// Due is when the run was first due. For a pending task without attempts it equals
	// At.
	Due time.Time `json:"due,omitzero"`
	// Attempts and Crashes are about the current run only.
	Attempts int `json:"attempts,omitempty"`
	Crashes  int `json:"crashes,omitempty"`
	// Runs is how many failed runs a dead letter stands for. All failed runs of a
	// repeating task share one dead letter.
	Runs int `json:"runs,omitempty"`
	// Worker is the [WorkerInfo.ID] of the Worker that runs a running task.
	Worker string `json:"worker,omitempty"`
	// Stopping means that the task is running, but was cancelled.
	Stopping bool `json:"stopping,omitempty"`
	// Following means that the task will run again at Next, after its present run, because
	// it was scheduled again while it was running, due or being retried. Task is the present
	// one, and NextTask the new one. Next is zero if the repetition of the present run says
	// when.
	Following bool      `json:"following,omitempty"`
	Next      time.Time `json:"next,omitzero"`
	// NextTask is the task that follows the present run, if its content differs.
	NextTask *Task `json:"next_task,omitempty"`
	// Paused means that the task waits for [Client.ResumeTask], or will do so when its attempt
	// has ended. Once means that it is pending and runs once nevertheless, at At.
	Paused bool `json:"paused,omitempty"`
	Once   bool `json:"once,omitempty"`
	// HandlerPaused means that the task is pending and waits for [Client.ResumeHandler].
	HandlerPaused bool `json:"handler_paused,omitempty"`
	// Ended is the run that the task follows: see [Task.OnSuccess]. It is nil for other tasks.
	Ended *Ended `json:"ended,omitempty"`
	// Run describes the run if State is Past, and is nil otherwise.
	Run *Run `json:"run,omitempty"`
	// Failures are the latest failed attempts, at most 10, the oldest first. One of them
	// may stand for the attempts that were handed back.
	Failures []Failure `json:"failures,omitempty"`
}

// A Failure describes a failed attempt, or the attempts that were handed back to the store
// and do not count.
type Failure struct {
	Attempt int       `json:"attempt"` // from 1, or 0 if the run failed before its first attempt
	Time    time.Time `json:"time"`    // by the store's clock
	Error   string    `json:"error"`   // its first 400 bytes
	// HandBacks is 0 for a failed attempt. Otherwise it is how often the run was handed
	// back, and the other fields are about the latest time.
	HandBacks int `json:"hand_backs,omitempty"`
}

func infoOf(e *store.Entry) (Info, error) {
	info := Info{
		ID:        e.ID,
		State:     e.State,
		Version:   e.Version,
		At:        timeOrNever(e.At),
		Due:       timeOrNever(e.Due),
		Attempts:  e.Attempts,
		Crashes:   e.Crashes,
		Worker:    workerID(e.Worker),
		Stopping:  e.Stopping,
		Following: e.Following && e.Next != store.Never,
		Failures:  failuresOf(e),

		HandlerPaused: e.HandlerPaused,
	}
	if e.Damaged {
		info.Task.Key = store.KeyOf(e.ID)
		return info, fmt.Errorf("durable: task %q: %w", store.Shorten(e.ID), store.ErrDamaged)
	}
	if e.State == store.Past {
		info.Task = Task{Key: store.KeyOf(e.ID), Handler: e.Handler, Group: e.Group}
		info.Run = runOf(e)
		return info, nil
	}
	if e.State == store.Dead {
		info.Runs = max(1, e.Runs)
	}
	if info.Following && e.Next != 0 {
		info.Next = timeOrNever(e.Next)
	}
	newestTask := &e.Task
	if e.NextTask != nil {
		newestTask = e.NextTask
	}
	info.Once = e.Once
	info.Paused = e.Paused || newestTask.Repeats() && (e.State == Pending && e.At == store.Farthest || e.Following && e.Next == store.Farthest)
	info.Ended = endedOf(&e.Task)
	var err error
	if info.Task, _, err = decodeTask(&e.Task); err != nil || e.NextTask == nil || e.Same(e.NextTask) {
		return info, err
	}
	nextTask, _, err := decodeTask(e.NextTask)
	if err == nil {
		info.NextTask = &nextTask
	}
	return info, err
}

// timeOrNever returns the zero time for a time that never comes.
func timeOrNever(t store.Time) time.Time {
	if t == store.Farthest {
		return time.Time{}
	}
	return t.Std()
}

func failuresOf(e *store.Entry) []Failure {
	var out []Failure
	for _, f := range e.Failures {
		out = append(out, Failure{Attempt: f.Attempt, Time: f.Time.Std(), Error: f.Text, HandBacks: f.HandBacks})
	}
	return out
}

// Get returns the Info of the task with a key or an [Info.ID], or [ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (Info, error) {
	if err := checkID(id); err != nil {
		return Info{}, err
	}
	e, err := c.store.Get(ctx, c.shardOf(id), id)
	if err != nil {
		return Info{}, clientError(err)
	}
	return infoOf(&e)
}
