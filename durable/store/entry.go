package store

import (
	"fmt"
	"strings"
)

// A State says where a task is in its life. A task has one state at a time.
type State uint8

const (
	// Pending tasks wait for their time or their next attempt.
	Pending State = iota + 1
	// Running tasks have a worker with a lease.
	Running
	// Dead tasks are dead letters.
	Dead
	// Past entries are finished runs, or the entry that counts the finished runs of a
	// key.
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

// MarshalText returns the state's String. JSON uses it too.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (s *State) UnmarshalText(b []byte) error {
	for x := Pending; x <= Past; x++ {
		if x.String() == string(b) {
			*s = x
			return nil
		}
	}
	return fmt.Errorf("store: unknown state %q", b)
}

// An Entry is all data that a store has about a task.
type Entry struct {
	Task
	State State
	// At depends on the State: when a Pending task is due, when the lease of a Running
	// one ends, when a Dead one died, until when a Past one is kept.
	At Time
	// Due is when the run was first due. It equals At for a Pending task without
	// attempts.
	Due Time
	// Attempts and Crashes are those of the current run.
	Attempts int
	Crashes  int
	Token    int64 // of the lease of a Running task
	// The package comment explains Stopping and Following. If the entry is Following,
	// Next is when it is due next. NextTask is then the task that was scheduled during
	// the attempt, or the present task with another generation, or nil if the present
	// task was only rescheduled.
	Stopping  bool
	Following bool
	Next      Time
	NextTask  *Task
	// Runs is how many failed runs the dead letter of a repeating task stands for, and
	// 0 in other entries.
	Runs int
	// Failures are the latest failed attempts, the oldest first.
	Failures []Failure
}

// A Failure describes a failed attempt.
type Failure struct {
	Attempt int
	Time    Time
	Text    string
}

// Texts of failures that stores write themselves.
const (
	TextCrashed = "the worker crashed or lost its lease"
	TextPoison  = "the worker crashed or lost its lease, as often as is allowed"
)

// Note returns old with one more failure: the latest [MaxFailures], each with at most
// [MaxText] bytes of text. It does not change old.
func Note(old []Failure, f Failure) []Failure {
	if len(f.Text) > MaxText {
		f.Text = strings.ToValidUTF8(f.Text[:MaxText-3], "") + "..."
	}
	if n := len(old) - (MaxFailures - 1); n > 0 {
		old = old[n:]
	}
	return append(append(make([]Failure, 0, len(old)+1), old...), f)
}
