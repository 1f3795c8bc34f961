package durable

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable/store"
)

// Limits of what a [Task] may carry.
const (
	// MaxKey is the largest length of a key and of a handler's name, in bytes.
	MaxKey = store.MaxID
	// MaxTask is the largest size of a task, in bytes: its key, the names of its
	// handler and schedule, its cron spec and zone, its body, and its headers with 6 more
	// for each. [WithMaxTask] changes it.
	MaxTask = 64 << 10
)

// A Task is what is to be done at some time, by whichever [Worker] gets it. The
// Handler must be set, all else may be zero.
type Task struct {
	// Key names the task in its [Client]'s queue: scheduling the same key again
	// replaces the task. Up to MaxKey bytes, any but NUL. An empty key gets one of
	// [NewKey], which nobody learns: to cancel the task later, or to schedule it again after
	// an error, call NewKey beforehand.
	Key string `json:"key"`
	// Handler is the name under which workers know the function to run: see
	// [Worker.Handle]. From 1 to MaxKey bytes.
	Handler string `json:"handler"`
	// Body and Headers are handed to the handler as they are.
	Body    []byte            `json:"body,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// MaxAttempts is how often the task is tried before it becomes a dead letter.
	// Zero means what the worker has for the handler.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Timeout is how long one attempt may take before its context is cancelled.
	// Zero means what the worker has for the handler.
	Timeout time.Duration `json:"timeout_ns,omitempty"`

	// Every makes the task repeat: each run is due Every after the last was due,
	// however long that took or how late it was. At least a millisecond. A run that
	// fails holds up those after it until it has succeeded or had all its attempts;
	// between two of these is at most the time between two runs.
	Every time.Duration `json:"every_ns,omitempty"`
	// Cron makes the task repeat by the calendar, at the times of a cron spec of five
	// fields, such as "0 9 * * 1-5", or of one such as "@daily". A run that fails holds up
	// those after it, as with Every. What happens when the clock is changed is said at
	// [jobs.Cron].
	Cron string `json:"cron,omitempty"`
	// Zone is the place whose clock Cron follows, such as "Europe/Berlin"; empty is UTC. A
	// worker that cannot load it leaves the task to others.
	Zone string `json:"zone,omitempty"`
	// Schedule makes the task repeat too: it names a schedule that the Clients and their
	// workers know, see [WithSchedule], which gives the next run's time. The task is over
	// when that is the zero time, and a dead letter if it is not after the last. Only
	// one of Every, Cron and Schedule may be set.
	Schedule string `json:"schedule,omitempty"`
	// Start and End are of a task that repeats. [Next] gives no run before Start, from which
	// Every is counted, and none comes after End. Zero means from now on, and for ever.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`

	// Unique is for how long the key is not scheduled again after the task was done: until
	// then Schedule of a Task that has a Unique is Kept. It is for tasks that do not repeat.
	Unique time.Duration `json:"unique_ns,omitempty"`
	// Retention says which of the key's runs are kept when they have ended.
	Retention Retention `json:"retention,omitzero"`

	// Missed says what is done about a run that comes late because no worker was
	// there; the zero value is LatestMissed. MissedAfter belongs to DeadMissed, which
	// needs it.
	Missed      Missed        `json:"missed,omitempty"`
	MissedAfter time.Duration `json:"missed_after_ns,omitempty"`
}

// Missed says what becomes of runs that a worker comes to late, after a
// downtime for example.
type Missed uint8

const (
	// LatestMissed runs a repeating task once for all the runs that were missed,
	// as of the latest of them. If the worker crashes, another one runs it as of what is
	// the latest by then. For other tasks it is FireMissed.
	LatestMissed Missed = iota
	// FireMissed runs them all, the oldest first.
	FireMissed
	// DeadMissed makes a dead letter of a run whose first attempt would begin
	// more than [Task.MissedAfter] late; it has had no attempts. A repeating task
	// goes on with the run after it. A run that was handed back, because its worker
	// was stopped or its host had no room, counts as one that has not begun.
	DeadMissed
)

func checkKey(key string) error {
	switch {
	case key == "":
		return invalid("the key is empty")
	case len(key) > MaxKey:
		return invalid("the key has %d bytes, more than %d", len(key), MaxKey)
	case strings.IndexByte(key, 0) >= 0:
		return invalid("the key %q contains a NUL", key)
	}
	return nil
}

func (t *Task) check() error {
	if err := checkKey(t.Key); err != nil {
		return err
	}
	switch {
	case t.Handler == "":
		return invalid("task %q has no handler", t.Key)
	case len(t.Handler) > MaxKey:
		return invalid("task %q: the handler's name has %d bytes, more than %d", t.Key, len(t.Handler), MaxKey)
	case len(t.Schedule) > MaxKey:
		return invalid("task %q: the schedule's name has %d bytes, more than %d", t.Key, len(t.Schedule), MaxKey)
	case t.MaxAttempts < 0:
		return invalid("task %q: MaxAttempts is negative", t.Key)
	case t.Timeout < 0 || t.Timeout > store.MaxDelay:
		return invalid("task %q: Timeout is %v, negative or more than %v", t.Key, t.Timeout, store.MaxDelay)
	case t.Every < 0 || t.Every > 0 && t.Every < time.Millisecond:
		return invalid("task %q: Every is %v, less than a millisecond", t.Key, t.Every)
	case t.Every > store.MaxDelay:
		return invalid("task %q: Every is %v, more than %v", t.Key, t.Every, store.MaxDelay)
	case t.MissedAfter > store.MaxDelay:
		return invalid("task %q: MissedAfter is %v, more than %v", t.Key, t.MissedAfter, store.MaxDelay)
	case t.Every > 0 && t.Schedule != "" || t.Cron != "" && (t.Every > 0 || t.Schedule != ""):
		return invalid("task %q has two of Every, Cron and Schedule", t.Key)
	case t.Zone != "" && t.Cron == "":
		return invalid("task %q has a Zone, which only Cron takes", t.Key)
	case !t.repeats() && !(t.Start.IsZero() && t.End.IsZero()):
		return invalid("task %q has a Start or an End, but does not repeat", t.Key)
	case t.Missed > DeadMissed:
		return invalid("task %q: there is no Missed of %d", t.Key, t.Missed)
	case t.Missed == DeadMissed && t.MissedAfter == 0:
		return invalid("task %q: DeadMissed needs a MissedAfter: without, every run would come too late", t.Key)
	case t.Unique < 0 || t.Unique > store.MaxDelay || t.Unique > 0 && t.repeats():
		return invalid("task %q: Unique is %v, negative or more than %v, or the task repeats", t.Key, t.Unique, store.MaxDelay)
	case t.Retention.For < 0 || t.Retention.For > store.MaxDelay || t.Retention.Runs < 0 || t.Retention.Runs > store.MaxRuns:
		return invalid("task %q: Retention is %+v, negative or more than %v or %d runs", t.Key, t.Retention, store.MaxDelay, store.MaxRuns)
	case t.MissedAfter < 0 || t.MissedAfter > 0 && t.Missed != DeadMissed:
		return invalid("task %q: MissedAfter is %v, which only DeadMissed takes, and not negative", t.Key, t.MissedAfter)
	}
	if t.Cron != "" {
		c, err := parseCron(t.Cron, t.Zone)
		if err != nil {
			return invalid("task %q: %v", t.Key, err)
		}
		if c.Next(time.Now()).IsZero() {
			return invalid("task %q: the cron spec %q has no time", t.Key, t.Cron)
		}
	}
	return nil
}

// printable is a key as it is shown in logs.
func printable(key string) string {
	if utf8.ValidString(key) && len(key) <= 80 {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
