package durable

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Info is what is known of a task.
type Info struct {
	// ID names the task in [Client.Get], [Client.Reschedule] and [Client.Cancel]. It is the
	// key, but for what shares the key with a repeating task: its dead letter, and a run of
	// it that was requeued. Their IDs begin with the key and a NUL: that is the
	// [Filter.Prefix] which lists them.
	ID    string `json:"id"`
	Task  Task   `json:"task"`
	State State  `json:"state"` // in JSON "pending", "running", "dead" or "past"
	// At is when it runs next if it is pending, when its lease ends if it is
	// running, when it died if it is dead, and until when it is kept if it is past.
	At time.Time `json:"at"`
	// Due is when the run was to begin: the same as At if it is pending and has
	// not been tried.
	Due time.Time `json:"due"`
	// Attempts and Crashes count what has been tried of the present run.
	Attempts int `json:"attempts,omitempty"`
	Crashes  int `json:"crashes,omitempty"`
	// Runs is how many runs have died, of a dead letter: more than 1 for a repeating task
	// alone, all of whose runs that died share one dead letter, which tells of the latest.
	Runs int `json:"runs,omitempty"`
	// Stopping: it runs and was asked to stop. Following: it runs, and will again,
	// at Next, because it was scheduled again meanwhile; Task is still what runs.
	Stopping  bool      `json:"stopping,omitempty"`
	Following bool      `json:"following,omitempty"`
	Next      time.Time `json:"next,omitzero"`
	// Paused: it repeats, and waits for [Client.ResumeTask].
	Paused bool `json:"paused,omitempty"`
	// Run is what is kept of a run that is past; else it is nil.
	Run *Run `json:"run,omitempty"`
	// Failures are the latest attempts that failed, the oldest first, 10 at most.
	Failures []Failure `json:"failures,omitempty"`
}

// A Failure is how an attempt ended.
type Failure struct {
	Attempt int       `json:"attempt"` // from 1; 0 if the run failed before its handler was called first
	Time    time.Time `json:"time"`    // by the store's clock
	Error   string    `json:"error"`   // its first 400 bytes
}

func infoOf(e *store.Entry) (Info, error) {
	info := Info{
		ID:        e.ID,
		State:     e.State,
		At:        e.At.Std(),
		Due:       e.Due.Std(),
		Attempts:  e.Attempts,
		Crashes:   e.Crashes,
		Stopping:  e.Stopping,
		Following: e.Following,
		Failures:  failuresOf(e),
	}
	if e.State == store.Past {
		info.Task = Task{Key: store.KeyOf(e.ID), Handler: e.Handler}
		info.Run = runOf(e)
		return info, nil
	}
	if e.State == store.Dead {
		info.Runs = max(1, e.Runs)
	}
	if e.Following {
		info.Next = e.Next.Std()
	}
	task := &e.Task
	if e.NextTask != nil {
		task = e.NextTask
	}
	info.Paused = task.Repeats() && (e.State == Pending && e.At == store.Farthest || e.Following && e.Next == store.Farthest)
	var err error
	info.Task, _, err = decode(&e.Task)
	return info, err
}

func failuresOf(e *store.Entry) []Failure {
	var out []Failure
	for _, f := range e.Failures {
		out = append(out, Failure{Attempt: f.Attempt, Time: f.Time.Std(), Error: f.Text})
	}
	return out
}

// Get returns what is known of the task with a key, or with an [Info.ID], or
// [ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (Info, error) {
	if err := checkID(id); err != nil {
		return Info{}, err
	}
	e, err := c.store.Get(ctx, c.shardOf(id), id)
	if err != nil {
		return Info{}, explain(err)
	}
	return infoOf(&e)
}
