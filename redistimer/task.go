package redistimer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of what a [Task] may carry.
const (
	// MaxKey is the largest length of a key and of a handler's name, in bytes.
	MaxKey = 512
	// MaxTask is the largest size of a task as it is stored, in bytes: body,
	// headers, names and about 30 bytes more.
	MaxTask = 64 << 10
)

// A Task is what is to be done at some time, by whichever [Worker] gets it. The
// Key and the Handler must be set, all else may be zero.
type Task struct {
	// Key names the task in its [Client]'s queue: scheduling the same key again
	// replaces the task. From 1 to MaxKey bytes, any but NUL.
	Key string
	// Handler is the name under which workers know the function to run: see
	// [Worker.Handle]. From 1 to MaxKey bytes.
	Handler string
	// Body and Headers are handed to the handler as they are.
	Body    []byte
	Headers map[string]string

	// MaxAttempts is how often the task is tried before it becomes a dead letter.
	// Zero means what the worker has for the handler.
	MaxAttempts int
	// Timeout is how long one attempt may take before its context is cancelled.
	// Zero means what the worker has for the handler.
	Timeout time.Duration

	// Every makes the task repeat: each run is due Every after the last was due,
	// however long that took or how late it was. At least a millisecond.
	Every time.Duration
	// Schedule makes the task repeat too: it names a schedule that the workers
	// know, see [WithSchedule], which gives the next run's time. The task is over
	// when that is the zero time, and a dead letter if it is not after the last. Only one of Every and Schedule may be set.
	Schedule string

	// Missed says what is done about a run that comes late because no worker was
	// there; the zero value is FireMissed. MissedAfter belongs to DeadMissed.
	Missed      Missed
	MissedAfter time.Duration
}

// Missed says what becomes of runs that a worker comes to late, after a
// downtime for example.
type Missed uint8

const (
	// FireMissed runs them all, the oldest first.
	FireMissed Missed = iota
	// LatestMissed runs a repeating task once for all the runs that were missed,
	// as of the latest of them. For other tasks it is FireMissed.
	LatestMissed
	// DeadMissed makes a dead letter of a run whose first attempt would begin
	// more than [Task.MissedAfter] late; it has had no attempts. A repeating task
	// goes on with the run after it.
	DeadMissed
)

// A When is a time for a task: after a delay, or at a point in time. Make one
// with [After] or [At]; the zero When is refused.
type When struct {
	kind  whenKind
	after time.Duration
	at    time.Time
}

type whenKind uint8

const (
	whenUnset whenKind = iota
	whenAfter
	whenAt
)

// After is a delay from the moment at which Redis executes the command, by the
// clock of Redis. Zero is due at once; a negative delay is refused with
// [ErrInvalid]. The delay is rounded up to a microsecond.
func After(d time.Duration) When { return When{kind: whenAfter, after: d} }

// At is a point in time, rounded up to a microsecond; one in the past is due at
// once. The zero time, and years from 2200 on, are refused with [ErrInvalid].
func At(t time.Time) When { return When{kind: whenAt, at: t} }

// maxDelay keeps times below maxYear, for they are exact until 2255.
const (
	maxYear  = 2200
	maxDelay = 170 * 365 * 24 * time.Hour
)

// farthest is the last moment that a task can be due at, in microseconds.
var farthest = time.Date(maxYear, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1

// arg is the form in which scripts take a When: microseconds, with a plus sign
// if they count from now.
func (w When) arg() (string, error) {
	switch w.kind {
	case whenAfter:
		if w.after < 0 {
			return "", invalid("the delay %v is negative", w.after)
		}
		if w.after > maxDelay {
			return "", invalid("the delay %v is out of range", w.after)
		}
		return "+" + strconv.FormatInt(int64((w.after+time.Microsecond-1)/time.Microsecond), 10), nil
	case whenAt:
		if w.at.IsZero() {
			return "", invalid("the time to be due at is zero")
		}
		if y := w.at.Year(); y >= maxYear || y < 1 {
			return "", invalid("the time %v is out of range", w.at)
		}
		return digits16(max(0, w.at.Add(time.Microsecond-1).UnixMicro())), nil
	}
	return "", invalid("no time was given: use After or At")
}

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
	case t.Timeout < 0 || t.Timeout > maxDelay:
		return invalid("task %q: Timeout is %v, negative or more than %v", t.Key, t.Timeout, maxDelay)
	case t.Every < 0 || t.Every > 0 && t.Every < time.Millisecond:
		return invalid("task %q: Every is %v, less than a millisecond", t.Key, t.Every)
	case t.Every > maxDelay:
		return invalid("task %q: Every is %v, more than %v", t.Key, t.Every, maxDelay)
	case t.MissedAfter > maxDelay:
		return invalid("task %q: MissedAfter is %v, more than %v", t.Key, t.MissedAfter, maxDelay)
	case t.Every > 0 && t.Schedule != "":
		return invalid("task %q has both Every and Schedule", t.Key)
	case t.Missed > DeadMissed:
		return invalid("task %q: there is no Missed of %d", t.Key, t.Missed)
	case t.MissedAfter < 0 || t.MissedAfter > 0 && t.Missed != DeadMissed:
		return invalid("task %q: MissedAfter is %v, which only DeadMissed takes, and not negative", t.Key, t.MissedAfter)
	}
	return nil
}

// printable is a key as it is shown in errors and logs.
func printable(key string) string {
	if utf8.ValidString(key) && len(key) <= 80 {
		return key
	}
	return fmt.Sprintf("%.80q", key)
}
