package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// An Item is a task and when it is due, for [Client.ScheduleBatch].
type Item struct {
	Task Task
	When When
}

// Stored returns the Item as stores take it, for those that schedule in a transaction of
// the application. [Next] is by this process's clock, and a Schedule has none. What is
// larger than [MaxTask] is refused.
func (x *Item) Stored() (store.Item, error) {
	return x.stored(MaxTask, nil, func(string) (store.Time, error) { return store.TimeOf(time.Now()), nil })
}

// stored returns the Item as stores take it. Now is asked for Next alone.
func (x *Item) stored(maxTask int, schedules map[string]Schedule, now func(key string) (store.Time, error)) (store.Item, error) {
	t := x.Task
	if t.Key == "" {
		t.Key = NewKey()
	}
	if err := t.check(); err != nil {
		return store.Item{}, err
	}
	w := x.When
	if w.kind == whenNext {
		at, err := now(t.Key)
		if err == nil {
			at, err = t.first(at, schedules)
		}
		if err != nil {
			return store.Item{}, err
		}
		w = At(at.Std())
	}
	when, err := w.stored()
	if err != nil {
		return store.Item{}, fmt.Errorf("task %.80q: %w", t.Key, err)
	}
	task, err := encode(&t, maxTask)
	return store.Item{ID: t.Key, When: when, Task: task}, err
}

// item returns the Item as the Client's store takes it.
func (c *Client) item(ctx context.Context, x *Item) (store.Item, error) {
	if name := x.Task.Schedule; name != "" && c.schedules[name] == nil {
		return store.Item{}, invalid("task %q: the Client does not know the schedule %q: see WithSchedule", x.Task.Key, name)
	}
	return x.stored(c.maxTask, c.schedules, func(key string) (store.Time, error) {
		now, err := c.store.Now(ctx, c.shardOf(key))
		if err != nil {
			return 0, fmt.Errorf("durable: %w: %w", ErrNotDone, err)
		}
		return now, nil
	})
}

// Schedule puts a task into the store, to run at the time w. If its key has a
// task already, that is replaced, unless an option says otherwise: the outcome
// is Created, Replaced, Kept or, if the task is running, Following.
//
// The context ends the call, whatever the store does. If it ends before the task
// was sent, or if the store refuses it, the task is not scheduled; if it was sent
// and there is no answer the error is an [UnknownError], and the task may be
// scheduled, but not after the context's deadline.
func (c *Client) Schedule(ctx context.Context, t Task, w When, opts ...ScheduleOption) (Outcome, error) {
	if c.schedule != nil {
		out, err := c.schedule(ctx, []Item{{t, w}}, opts...)
		if len(out) == 0 {
			return Unknown, err
		}
		return out[0], err
	}
	command, err := scheduling("Schedule", opts)
	if err != nil {
		return Unknown, err
	}
	item, err := c.item(ctx, &Item{t, w})
	if err != nil {
		return Unknown, err
	}
	return c.one(ctx, command, item)
}

// ScheduleBatch schedules many tasks at the cost of few, and returns an outcome
// for each, in their order. They are sent in commands of at most 250 tasks, each
// of which is carried out as a whole or not at all; of two items with the same
// key the later counts. If any item is invalid, none is sent. On another error
// the outcome of tasks that were not scheduled, or of which that is not known, is
// Unknown; the error is an [UnknownError] if there are any of the second kind.
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	if c.schedule != nil {
		return c.schedule(ctx, items, opts...)
	}
	return c.scheduleBatch(ctx, items, opts...)
}

func (c *Client) scheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	command, err := scheduling("ScheduleBatch", opts)
	if err != nil {
		return nil, err
	}
	x := c.newCommand(ctx, command, len(items))
	for i := range items {
		item, err := c.item(ctx, &items[i])
		if err != nil {
			return nil, err
		}
		x.add(i, item)
	}
	return x.do(ctx)
}

// Cancel takes the task with the key out: the outcome is Removed if it will not
// run because of this call, Stopping if it is running and was asked to stop, and
// Absent if there is no such task, or it is a dead letter. A repeating task does
// not repeat any more in either case. The context of a running handler is cancelled at once
// in a Worker of this Client, and elsewhere within a third of the lease.
//
// A run of a repeating task that was requeued is a task of its own: Cancel with the key
// leaves it as it is, and Cancel with its [Info.ID] takes it out, and leaves the repeating
// task.
func (c *Client) Cancel(ctx context.Context, id string) (Outcome, error) {
	if err := checkID(id); err != nil {
		return Unknown, err
	}
	return c.one(ctx, store.Command{Op: store.Cancel}, store.Item{ID: id})
}

// Reschedule moves the pending task with a key, or with an [Info.ID], to another time: the
// outcome is Moved. If it is running, it runs again at that time, and the outcome is
// Following. It is Absent if there is no such task, or it is a dead letter. It ends a pause of
// the task.
func (c *Client) Reschedule(ctx context.Context, id string, w When) (Outcome, error) {
	item, err := Move{id, w}.stored()
	if err != nil {
		return Unknown, err
	}
	return c.one(ctx, store.Command{Op: store.Reschedule}, item)
}
