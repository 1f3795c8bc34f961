package store

import (
	"fmt"
	"strings"
)

// A State is one of the stages of a task's life. A task has one State at a time.
type State uint8

const (
	// Pending tasks wait for their time or their next attempt.
	Pending State = iota + 1
	// Running tasks have a worker with a lease.
	Running
	// Dead tasks are dead letters.
	Dead
	// Past entries are finished runs that are kept, or a key's head entry, which counts
	// them.
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

// HasExpired reports whether e is a Past entry that has expired. Stores do not return such
// an entry or count it, and delete it soon.
func (e *Entry) HasExpired(now Time) bool { return e.State == Past && e.At <= now }

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
	// At depends on the State. It is when a Pending task is due, a Running task's lease
	// ends, a Dead task died, or a Past entry expires.
	At Time
	// Due is when the run was first due. It equals At for a Pending task without
	// attempts.
	Due Time
	// Attempts and Crashes count the attempts at the current run, and how many crashed.
	Attempts int
	Crashes  int
	Suspect  bool  // whether a Pending or Running task is a suspect: see IsSuspect
	Token    int64 // of the lease of a Running task
	Worker   int64 // the Round.Worker that has claimed a Running task, or 0
	// Version is the number of the task's latest change by a command: see the package comment.
	// It is 1 for a task that was stored by a version of its store without them, and 0 for a Past
	// entry.
	Version int64
	// Stopping is true if a Running task was cancelled.
	Stopping bool
	// Following is true if a Running task, or the run of a repeating task that is due or
	// being retried, was scheduled again. Then the task becomes Pending at Next, with the
	// content of NextTask, or with its own if NextTask is nil. ChangesOnlyLater says
	// whether that is at the end of the run, or of the attempt.
	//
	// If Next is 0, the worker's report says when the task is due next. If Next is
	// [Never], the task is removed.
	Following bool
	Next      Time
	NextTask  *Task
	// Paused says that a Pending or Running task is paused, and Once that the Pending task
	// runs once nevertheless.
	Paused, Once bool
	// Runs counts the failed runs in the dead letter of a repeating task, and the runs
	// kept so far in a head entry: see [HeadID]. In other entries it is 0.
	Runs int
	// Failures are the latest failed attempts, the oldest first, and one element for all
	// attempts that were handed back.
	Failures []Failure
	// HandlerPaused says that the handler of a Pending task is paused. Stores set it in the
	// answers of Get and List. It is not a part of the task.
	HandlerPaused bool
	// Damaged says that the stored task is damaged. Only ID, State and At are set, and may
	// be wrong. Lists contain such an entry; Get returns [ErrDamaged] instead.
	Damaged bool
}

// Waits reports whether the task is Pending and no claim gets it, because it is paused.
func (e *Entry) Waits() bool { return e.State == Pending && e.Paused && !e.Once }

// ChangesOnlyLater reports whether a Following task continues its run if the attempt does
// not end it: the task repeats before and after the change, and is neither cancelled nor
// paused.
func (e *Entry) ChangesOnlyLater() bool {
	return e.Following && !e.Stopping && e.Next != Farthest && e.Repeats() && (e.NextTask == nil || e.NextTask.Repeats())
}

// Continues reports whether the task stays when its attempt ends without a result. An entry
// that does not cannot be imported.
func (e *Entry) Continues() bool {
	if !e.Following {
		return !e.Stopping
	}
	return e.Next != Never || e.ChangesOnlyLater()
}

// AdoptChange gives the run of a Following task the new content, if there is any, when an
// attempt has ended but not the run. Later only the time of the next run changes.
func (e *Entry) AdoptChange() {
	if e.NextTask != nil && (e.Next == 0 || !e.Same(e.NextTask)) {
		e.Task, e.NextTask = *e.NextTask, nil
	}
	if e.Next == 0 {
		e.Following = false
	}
}

// WithoutAttempt returns the entry as an import at the time now stores it: see [Import].
func (e *Entry) WithoutAttempt(now Time) Entry {
	x := *e
	x.Token, x.Worker = 0, 0
	switch {
	case x.State >= Dead:
	case x.ChangesOnlyLater():
		x.AdoptChange()
		x.NextTask = nil // differs at most in its generation
	case x.Following:
		if x.NextTask != nil {
			x.Task = *x.NextTask
		}
		x.State, x.At, x.Due, x.Attempts, x.Crashes, x.Failures = Pending, x.Next, x.Next, 0, 0, nil
		x.Following, x.Next, x.NextTask = false, 0, nil
	}
	if x.State == Running {
		x.State, x.At = Pending, now
	}
	x.Stopping = false
	return x
}

// A Failure describes a failed attempt, or the attempts that were handed back.
type Failure struct {
	Attempt int
	Time    Time
	Text    string
	// HandBacks is 0 for a failed attempt. Otherwise it is how often the run was handed
	// back, and the other fields are about the latest time.
	HandBacks int `json:",omitempty"`
}

// Texts of the failures that stores add themselves.
const (
	TextCrashed = "the worker crashed or lost its lease"
	TextPoison  = "the worker crashed or lost its lease, as often as is allowed"
)

// Note returns a copy of old with f at its end. It keeps the latest [MaxFailures], and
// at most [MaxText] bytes of f's text, without bytes that are not UTF-8.
func Note(old []Failure, f Failure) []Failure {
	if f.Text = strings.ToValidUTF8(f.Text, ""); len(f.Text) > MaxText {
		f.Text = strings.ToValidUTF8(f.Text[:MaxText-3], "") + "..."
	}
	if n := len(old) - (MaxFailures - 1); n > 0 {
		old = old[n:]
	}
	return append(append(make([]Failure, 0, len(old)+1), old...), f)
}

// NoteHandBack is Note for an attempt that was handed back. The new element replaces and
// counts the previous one, so that hand-backs never displace more than one failure.
func NoteHandBack(old []Failure, f Failure) []Failure {
	f.HandBacks = 1
	var failures []Failure
	for _, x := range old {
		if f.HandBacks += x.HandBacks; x.HandBacks == 0 {
			failures = append(failures, x)
		}
	}
	return Note(failures, f)
}
