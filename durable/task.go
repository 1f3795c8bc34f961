package durable

import (
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
)

// Limits of what a [Task] may carry.
const (
	// MaxKey is the largest length of a key and of a handler's name, in bytes.
	MaxKey = store.MaxID
	// MaxTask is the largest size of a task in bytes: its strings, body and headers.
	// Each header counts 6 bytes more. [WithMaxTask] changes it.
	MaxTask = 64 << 10
)

// A Task describes work that some [Worker] does at some time. Only the Handler is
// required.
type Task struct {
	// Key identifies the task in its store: scheduling the same key again replaces the
	// task. It must be a name as [store.IsName] describes: up to MaxKey bytes of UTF-8
	// without control characters. If Key is empty, the task gets a key from [NewKey].
	// Schedule does not return that key.
	Key string `json:"key"`
	// Handler is the name of the function to run: see [Worker.Handle]. It, Schedule and
	// Zone must be names like Key.
	Handler string `json:"handler"`
	// Group is the task's group, such as a tenant, an account or a host, or empty. It is a
	// name like Key. [Limit] says how many tasks of a group may run.
	Group string `json:"group,omitempty"`
	// Body and Headers are passed to the handler unchanged.
	Body    []byte            `json:"body,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// MaxAttempts is the number of attempts before the task becomes a dead letter. Zero
	// means the handler's own setting: see [WithMaxAttempts].
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Timeout is how long an attempt may take before its context is cancelled. Zero
	// means the handler's own setting: see [WithTimeout].
	Timeout time.Duration `json:"timeout_ns,omitempty"`

	// Every makes the task repeat with this period, at least a millisecond. Each run is
	// due one period after the previous run was due. It starts when the previous run
	// has succeeded or used all its attempts.
	Every time.Duration `json:"every_ns,omitempty"`
	// Cron makes the task repeat at the times of a cron spec, such as "0 9 * * 1-5" or
	// "@daily": see [jobs.ParseCron]. [jobs.Cron] says what happens when the clocks change.
	// If the rules of a zone change, a pending run keeps its time.
	Cron string `json:"cron,omitempty"`
	// Zone is the time zone of Cron, such as "Europe/Berlin". Empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Schedule makes the task repeat at the times of the schedule with this name: see
	// [WithSchedule]. Only one of Every, Cron and Schedule may be set.
	Schedule string `json:"schedule,omitempty"`
	// Start and End limit when a repeating task runs. With [Next], the first run is not
	// before Start. No run is due after End. Zero means no limit.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`

	// Unique protects the key for this time after the task has succeeded. Scheduling a
	// Task with this key and a Unique then does nothing, and the outcome is Kept. Before
	// that, Unique has no effect: a pending task is replaced, and a running one runs again
	// afterwards. [OnlyNew] prevents that. The task must not repeat.
	Unique time.Duration `json:"unique_ns,omitempty"`
	// Retention says which finished runs of the key are kept.
	Retention Retention `json:"retention,omitzero"`

	// OnSuccess and OnFailure are follow-ups: tasks to run when a run of this task has
	// succeeded, or has become a dead letter. The store adds the follow-up, due at once, when
	// it ends the run, so it comes exactly once for each end of a run, also if the run died by
	// crashes. No follow-up comes after a run that was cancelled, or that failed after the
	// task was scheduled again.
	//
	// A follow-up is in the Group of the task that it follows. It must not repeat, and must have
	// no Key, Group, Unique and Retention. Its handler gets the key of the ended task as
	// [Delivery.Key], and the run as [Delivery.Ended]. Its own id is an [Info.ID] that begins
	// with that key and a NUL, so Schedule and Cancel of the key do not affect it. It may have
	// follow-ups itself. In [MaxTask] each counts 512 bytes more than its content.
	OnSuccess *Task `json:"on_success,omitempty"`
	OnFailure *Task `json:"on_failure,omitempty"`

	// Missed says what happens to late runs. MissedAfter is only for DeadMissed, which
	// requires it.
	Missed      Missed        `json:"missed,omitempty"`
	MissedAfter time.Duration `json:"missed_after_ns,omitempty"`
}

// Missed says what happens to runs that a worker claims late, for example after a
// downtime.
type Missed uint8

const (
	// LatestMissed, the default, runs a repeating task once for all missed runs, with
	// the Due of the latest. A task that does not repeat runs late.
	LatestMissed Missed = iota
	// FireMissed runs all missed runs, the oldest first. Of those that are due when Every,
	// Cron, Zone or Schedule changes, it runs the first.
	FireMissed
	// DeadMissed makes a run a dead letter if its first attempt would start more than
	// [Task.MissedAfter] late. A repeating task continues with its next run.
	DeadMissed
)

// nameRule is what store.IsName demands, for error texts.
const nameRule = "1 to 512 bytes of UTF-8 without control characters"

func (t *Task) check() error {
	switch {
	case !store.IsName(t.Key):
		return invalidError("the key %q must have "+nameRule, t.Key)
	case !store.IsName(t.Handler):
		return invalidError("task %q: the handler's name %q must have "+nameRule, t.Key, t.Handler)
	case t.Schedule != "" && !store.IsName(t.Schedule):
		return invalidError("task %q: the schedule's name %q must have "+nameRule, t.Key, t.Schedule)
	case t.Group != "" && !store.IsName(t.Group):
		return invalidError("task %q: the group's name %q must have "+nameRule, t.Key, t.Group)
	case t.MaxAttempts < 0 || t.MaxAttempts > maxCount:
		return invalidError("task %q: MaxAttempts is %d, but must be from 0 to %d", t.Key, t.MaxAttempts, maxCount)
	case t.Timeout < 0 || t.Timeout > store.MaxDelay:
		return invalidError("task %q: Timeout is %v, but must be from 0 to %v", t.Key, t.Timeout, store.MaxDelay)
	case t.Every < 0 || t.Every > 0 && t.Every < time.Millisecond:
		return invalidError("task %q: Every is %v, less than a millisecond", t.Key, t.Every)
	case t.Every > store.MaxDelay:
		return invalidError("task %q: Every is %v, more than %v", t.Key, t.Every, store.MaxDelay)
	case t.MissedAfter > store.MaxDelay:
		return invalidError("task %q: MissedAfter is %v, more than %v", t.Key, t.MissedAfter, store.MaxDelay)
	case t.Every > 0 && t.Schedule != "" || t.Cron != "" && (t.Every > 0 || t.Schedule != ""):
		return invalidError("task %q has two of Every, Cron and Schedule", t.Key)
	case t.Zone != "" && t.Cron == "":
		return invalidError("task %q has a Zone but no Cron", t.Key)
	case !t.Start.IsZero() && !t.End.IsZero() && t.End.Before(t.Start):
		return invalidError("task %q: its End %v is before its Start %v", t.Key, t.End, t.Start)
	case !t.repeats() && !(t.Start.IsZero() && t.End.IsZero()):
		return invalidError("task %q has a Start or an End, but does not repeat", t.Key)
	case t.Missed > DeadMissed:
		return invalidError("task %q: Missed is %d, which is not known", t.Key, t.Missed)
	case t.Missed == DeadMissed && t.MissedAfter == 0:
		return invalidError("task %q: DeadMissed requires a MissedAfter", t.Key)
	case t.Unique < 0 || t.Unique > store.MaxDelay || t.Unique > 0 && t.repeats():
		return invalidError("task %q: Unique is %v, but must be from 0 to %v, and 0 if the task repeats", t.Key, t.Unique, store.MaxDelay)
	case t.Retention.For < 0 || t.Retention.For > store.MaxDelay || t.Retention.Runs < 0 || t.Retention.Runs > store.MaxRuns:
		return invalidError("task %q: Retention is %+v, but must be from 0 to %v and from 0 to %d runs", t.Key, t.Retention, store.MaxDelay, store.MaxRuns)
	case t.MissedAfter < 0 || t.MissedAfter > 0 && t.Missed != DeadMissed:
		return invalidError("task %q: MissedAfter is %v, but must not be negative, and is only for DeadMissed", t.Key, t.MissedAfter)
	}
	if t.followUps(maxFollowUps+1) > maxFollowUps {
		return invalidError("task %q has more than %d follow-ups, or one that follows itself", t.Key, maxFollowUps)
	}
	for _, f := range []*Task{t.OnSuccess, t.OnFailure} {
		if f == nil {
			continue
		}
		x := *f
		if x.Key != "" || x.Group != "" || x.repeats() || x.Unique != 0 || x.Retention != (Retention{}) {
			return invalidError("task %q: a follow-up must have no Key and no Group, and neither repeat nor have a Unique or Retention", t.Key)
		}
		x.Key = t.Key
		if err := x.check(); err != nil {
			return err
		}
	}
	if t.Cron != "" {
		if _, err := parseCron(t.Cron, t.Zone); err != nil {
			return invalidError("task %q: %v", t.Key, err)
		}
	}
	return nil
}

// maxFollowUps is more than the follow-ups of a task may be: each counts 512 bytes more than its
// content.
const maxFollowUps = 512

// followUps counts the follow-ups of a task, and theirs, at most n.
func (t *Task) followUps(n int) (found int) {
	for _, f := range []*Task{t.OnSuccess, t.OnFailure} {
		if f != nil && found < n {
			found += 1 + f.followUps(n-found-1)
		}
	}
	return found
}

// encodeTask returns the task as a store's task. If the task is larger than maxBytes, it
// returns an error. The generation comes from r.
func encodeTask(t *Task, maxBytes int, r *random.Source) (store.Task, error) {
	x := record.Task{
		Keeping: store.Keeping{Unique: t.Unique, For: t.Retention.For, Most: t.Retention.Runs},
		Headers: t.Headers, MaxAttempts: t.MaxAttempts, Timeout: t.Timeout, Every: t.Every,
		Missed: byte(t.Missed), MissedAfter: t.MissedAfter, Cron: t.Cron, Zone: t.Zone, Start: t.Start, End: t.End, Body: t.Body,
	}
	for _, f := range []struct {
		task    *Task
		encoded **store.Task
	}{{t.OnSuccess, &x.Success}, {t.OnFailure, &x.Failure}} {
		if f.task != nil {
			encoded, err := encodeTask(f.task, maxBytes, nil)
			if err != nil {
				return store.Task{}, err
			}
			*f.encoded = record.FollowUp(encoded)
		}
	}
	if size := len(t.Key) + len(t.Handler) + len(t.Schedule) + len(t.Group) + x.Size(); size > maxBytes {
		return store.Task{}, invalidError("task %q has %d bytes with its headers, more than %d: see WithMaxTask", t.Key, size, maxBytes)
	}
	return store.Task{ID: t.Key, Handler: t.Handler, Schedule: t.Schedule, Group: t.Group, Record: x.Encode(r)}, nil
}

// newRunItem returns the item of a command that starts another run. The run gets a new
// generation.
func newRunItem(id string, when store.When, r *random.Source) store.Item {
	var b [8]byte
	return store.Item{ID: id, When: when, Generation: string(record.AppendGeneration(b[:0], r))}
}

// decodeTask decodes a store's task, and returns its generation too. The requeued run of a
// repeating task does not repeat.
func decodeTask(x *store.Task) (t Task, generation string, err error) {
	t = Task{Key: store.KeyOf(x.ID), Handler: x.Handler, Schedule: x.Schedule, Group: x.Group}
	r, generation, err := record.Decode(x)
	if err == nil {
		t.OnSuccess, err = decodeFollowUp(r.Success)
	}
	if err == nil {
		t.OnFailure, err = decodeFollowUp(r.Failure)
	}
	if err != nil {
		return t, generation, err
	}
	t.Body, t.Headers, t.MaxAttempts, t.Timeout = r.Body, r.Headers, r.MaxAttempts, r.Timeout
	t.Every, t.Cron, t.Zone, t.Start, t.End = r.Every, r.Cron, r.Zone, r.Start, r.End
	t.Unique, t.Retention = r.Keeping.Unique, Retention{r.Keeping.For, r.Keeping.Most}
	t.Missed, t.MissedAfter = Missed(r.Missed), r.MissedAfter
	if store.IsSingle(x.ID) {
		t.Every, t.Schedule, t.Cron, t.Zone, t.Start, t.End = 0, "", "", "", time.Time{}, time.Time{}
	}
	return t, generation, nil
}

func decodeFollowUp(x *store.Task) (*Task, error) {
	if x == nil {
		return nil, nil
	}
	t, _, err := decodeTask(x)
	return &t, err
}

// endedOf returns which run a follow-up follows, or nil for another task.
func endedOf(x *store.Task) *Ended {
	e, ok := x.FollowedRun()
	if !ok {
		return nil
	}
	return &Ended{Done: e.Done, Due: timeOrNever(e.Due), Attempts: e.Attempts, Crashes: e.Crashes, Error: e.Text}
}
