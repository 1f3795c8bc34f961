package machine

import (
	"encoding/json"

	"github.com/tickless/tickless/durable/store"
)

// moreFields are the fields that only few tasks use. Stores with columns have one for all of
// them, as JSON.
type moreFields struct {
	Crashes   int             `json:"crashes,omitempty"`
	Runs      int             `json:"runs,omitempty"`
	Stopping  bool            `json:"stopping,omitempty"`
	Following bool            `json:"following,omitempty"`
	Suspect   bool            `json:"suspect,omitempty"`
	Paused    bool            `json:"paused,omitempty"`
	Once      bool            `json:"once,omitempty"`
	Next      store.Time      `json:"next,omitempty"`
	NextTask  *store.Task     `json:"next_task,omitempty"`
	Failures  []store.Failure `json:"failures,omitempty"`
}

// EncodeMore returns the rarely used fields of a task as JSON, or nil if all are zero.
// suspect replaces the task's Suspect: it is false if the store has a column for it.
func (t *Task) EncodeMore(suspect bool) []byte {
	if t.Crashes == 0 && t.Runs == 0 && !t.Stopping && !t.Following && !suspect && !t.Paused && len(t.Failures) == 0 {
		return nil
	}
	b, err := json.Marshal(moreFields{t.Crashes, t.Runs, t.Stopping, t.Following, suspect, t.Paused, t.Once, t.Next, t.NextTask, t.Failures})
	if err != nil {
		panic(err) // impossible: the fields are numbers and texts
	}
	return b
}

// DecodeMore sets the fields that EncodeMore has encoded.
func (t *Task) DecodeMore(text []byte) error {
	if text == nil {
		return nil
	}
	var x moreFields
	err := json.Unmarshal(text, &x)
	t.Suspect = t.Suspect || x.Suspect
	t.Crashes, t.Runs, t.Paused, t.Once = x.Crashes, x.Runs, x.Paused, x.Once
	t.Stopping, t.Following, t.Next, t.NextTask, t.Failures = x.Stopping, x.Following, x.Next, x.NextTask, x.Failures
	return err
}
