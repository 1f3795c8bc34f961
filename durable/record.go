package durable

import (
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
)

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
