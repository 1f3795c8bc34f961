package store

import (
	"fmt"
	"strings"
)

// A State is where a task is. It is in one place at any time.
type State uint8

const (
	// Pending: it waits for its time, or for its next attempt.
	Pending State = iota + 1
	// Running: a worker has a lease on it.
	Running
	// Dead: it is a dead letter.
	Dead
	// Past: it is a run that has ended, or what all the runs of a key have in common.
	Past
)

func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Running:
		return "running"
	case Dead:
		return "dead"
	case Past:
		return "past"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText writes the state as String does, in JSON too.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *State) UnmarshalText(b []byte) error {
	for x := Pending; x <= Past; x++ {
		if x.String() == string(b) {
			*s = x
			return nil
		}
	}
	return fmt.Errorf("store: there is no state %q", b)
}

// An Entry is all that a store knows of a task.
type Entry struct {
	Task
	State State
	// At is when the task is due if it is Pending, when its lease ends if it is
	// Running, when it died if it is Dead, and until when it is kept otherwise.
	At Time
	// Due is when the run was to begin: the same as At if it is Pending and has not
	// been tried.
	Due Time
	// Attempts and Crashes count what has been tried of the present run.
	Attempts int
	Crashes  int
	Token    int64 // of the lease, if it is Running
	// Stopping and Following are said in the package comment. Next is when what
	// follows is due, and NextTask what it was scheduled as while it ran, with the same
	// ID, or what it is with another generation; nil if it was only rescheduled.
	Stopping  bool
	Following bool
	Next      Time
	NextTask  *Task
	// Runs is how many runs have died, of the dead letter of a repeating task; 0 of
	// any other entry.
	Runs int
	// Failures are the latest attempts that failed, the oldest first.
	Failures []Failure
}

// A Failure is how an attempt ended.
type Failure struct {
	Attempt int
	Time    Time
	Text    string
}

// Texts of failures that stores themselves note.
const (
	TextCrashed = "the worker crashed or lost its lease"
	TextPoison  = "the worker crashed or lost its lease, as often as is allowed"
)

// Note returns failures with one more, as stores keep them: the latest [MaxFailures],
// each with [MaxText] of its text. It does not change what it is given.
func Note(old []Failure, f Failure) []Failure {
	if len(f.Text) > MaxText {
		f.Text = strings.ToValidUTF8(f.Text[:MaxText-3], "") + "..."
	}
	if n := len(old) - (MaxFailures - 1); n > 0 {
		old = old[n:]
	}
	return append(append(make([]Failure, 0, len(old)+1), old...), f)
}
