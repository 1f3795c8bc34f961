package durable

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
)

// An Item is a task and its time, for [Client.ScheduleBatch].
type Item struct {
	Task Task
	When When
}

// Stored returns the Item as a store's item, to schedule it in a transaction of the
// program's own database. Task.Schedule is not supported, and [Next] uses this
// process's clock. If the task is larger than [MaxTask], the error is an [ErrInvalid].
func (x *Item) Stored() (store.Item, error) {
	return x.storeItem(MaxTask, nil, nil, func(string) (store.Time, error) { return store.TimeOf(time.Now()), nil })
}

// storeItem returns the Item as a store's item. It calls now only if the When is Next.
func (x *Item) storeItem(maxTaskBytes int, schedules map[string]Schedule, r *random.Source, now func(key string) (store.Time, error)) (store.Item, error) {
	t := x.Task
	if t.Key == "" {
		t.Key = NewKey()
	}
	if err := t.check(); err != nil {
		return store.Item{}, err
	}
	w, isNext := x.When, x.When.kind == whenNext
	if isNext {
		at, err := now(t.Key)
		if err == nil {
			at, err = t.firstRun(at, schedules)
		}
		if err != nil {
			return store.Item{}, err
		}
		w = At(at.Std())
	}
	when, err := w.storeWhen()
	if err != nil {
		return store.Item{}, fmt.Errorf("task %q: %w", store.Shorten(t.Key), err)
	}
	task, err := encodeTask(&t, maxTaskBytes, r)
	return store.Item{ID: t.Key, When: when, Task: task, Next: isNext}, err
}

// storeItem returns the Item as an item of the Client's store.
func (c *Client) storeItem(ctx context.Context, x *Item) (store.Item, error) {
	if name := x.Task.Schedule; name != "" && c.schedules[name] == nil {
		return store.Item{}, invalidError("task %q: the Client does not know the schedule %q: see WithSchedule", x.Task.Key, name)
	}
	return x.storeItem(c.maxTaskBytes, c.schedules, c.random, func(key string) (store.Time, error) {
		now, err := c.store.Now(ctx, c.shardOf(key))
		if err != nil {
			return 0, fmt.Errorf("durable: %w: %w", ErrNotDone, err)
		}
		return now, nil
	})
}

// Schedule stores a task to run at the time w. If the key already has a task, the new
// one replaces it, unless an option says otherwise. The outcome is Created, Replaced,
// Kept or, if the task is running, Following.
//
// A change of a repeating task loses no run, except some of [FireMissed]: a run that is due,
// being retried or running stays, with its time and attempts. It gets the new content, also
// if it is running and needs another attempt. Only what follows changes. With [Next] and
// unchanged Every, Cron, Zone, Schedule and Start, also a run that is not due yet keeps its
// time.
//
// If a task with [Next] has no run left before its End, that is no error: a pending task
// is removed (outcome Removed), what is due or running is its last run, and otherwise the
// outcome is Absent.
//
// If the error is an [UnknownError], there was no answer: the task may be scheduled now
// or later, but not after the context's deadline. After any other error the task is not
// scheduled.
func (c *Client) Schedule(ctx context.Context, t Task, w When, opts ...ScheduleOption) (Outcome, error) {
	out, err := c.wrappedSchedule(ctx, "Schedule", []Item{{t, w}}, opts)
	if len(out) == 0 {
		return Unknown, err
	}
	return out[0], err
}

// ScheduleBatch schedules many tasks in few commands, and returns their outcomes in the
// same order. If two items have the same key, the later one counts. If any item is
// invalid, no command is sent.
//
// After an error, the outcome is Unknown for all tasks that were not scheduled or whose
// command was not answered. If a command was not answered, the error is an
// [UnknownError].
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	return c.wrappedSchedule(ctx, "ScheduleBatch", items, opts)
}

func (c *Client) wrappedSchedule(ctx context.Context, method string, items []Item, opts []ScheduleOption) ([]Outcome, error) {
	if c.wrappedScheduleFunc != nil {
		return c.wrappedScheduleFunc(ctx, items, opts...)
	}
	return c.schedule(ctx, method, items, opts)
}

// schedule is ScheduleBatch without middleware.
func (c *Client) schedule(ctx context.Context, method string, items []Item, opts []ScheduleOption) ([]Outcome, error) {
	config, err := newScheduleConfig(method, opts)
	if err != nil {
		return nil, err
	}
	if config.version != 0 && len(items) > 1 {
		return nil, invalidError("ScheduleBatch: IfVersion is for one task, got %d", len(items))
	}
	if config.info != nil && len(items) > 1 {
		return nil, invalidError("ScheduleBatch: ReturnInfo is for one task, got %d", len(items))
	}
	x := c.newCommand(ctx, config.command(), len(items))
	for i := range items {
		item, err := c.storeItem(ctx, &items[i])
		if err != nil {
			return nil, err
		}
		config.applyTo(&item)
		x.addItem(i, item)
	}
	outcomes, err := x.do(ctx)
	if after := x.template.After; err == nil && after != nil && after.State != 0 {
		if info, damaged := infoOf(after); damaged == nil {
			*config.info = info
		}
	}
	return outcomes, err
}

// Cancel removes the task with a key or an [Info.ID], and ends its repetition. The
// outcome is Removed if the task will not run, Absent if there is no such task or it is
// a dead letter, or Stopping if it is running.
//
// The context of a running handler is cancelled: immediately if its Worker belongs to
// this Client, otherwise within a third of the lease.
func (c *Client) Cancel(ctx context.Context, id string, opts ...ChangeOption) (Outcome, error) {
	return c.doOneChange(ctx, "Cancel", store.Cancel, store.Item{ID: id}, opts)
}

// Reschedule moves the task with a key or an [Info.ID] to another time. The outcome is
// Moved, or Absent if there is no such task or it is a dead letter. A paused task runs once
// at that time, for one attempt, and stays paused: the outcome is then Once. A running task
// runs again at that time, a paused one only after it is resumed: the outcome is then
// Following. The run of a repeating task stays if it is due or being retried and the time is
// later: the outcome is then Following too.
func (c *Client) Reschedule(ctx context.Context, id string, w When, opts ...ChangeOption) (Outcome, error) {
	item, err := Move{id, w}.storeItem(c.random)
	if err != nil {
		return Unknown, err
	}
	return c.doOneChange(ctx, "Reschedule", store.Reschedule, item, opts)
}

// NewKey returns a unique random key of 26 letters and digits. A Task without a Key
// gets one.
func NewKey() string { return rand.Text() }

// withKeys returns a copy of items in which each task has a key.
func withKeys(items []Item) []Item {
	items = slices.Clone(items)
	for i := range items {
		if items[i].Task.Key == "" {
			items[i].Task.Key = NewKey()
		}
	}
	return items
}

// A Move names a task, by its key or its [Info.ID], and the time to move it to.
type Move struct {
	ID   string
	When When
}

// storeItem returns the Move as a store's item. The moved run gets a new generation.
func (m Move) storeItem(r *random.Source) (store.Item, error) {
	if err := checkID(m.ID); err != nil {
		return store.Item{}, err
	}
	when, err := m.When.storeWhen()
	return newRunItem(m.ID, when, r), err
}

// RescheduleBatch reschedules many tasks in few commands, and returns one outcome for
// each Move, in the same order. Errors are as for [Client.ScheduleBatch].
func (c *Client) RescheduleBatch(ctx context.Context, moves []Move) ([]Outcome, error) {
	return c.moveBatch(ctx, store.Reschedule, moves)
}

// RequeueBatch requeues many dead letters in few commands, and returns one outcome for
// each Move, in the same order. Errors are as for [Client.ScheduleBatch].
func (c *Client) RequeueBatch(ctx context.Context, moves []Move) ([]Outcome, error) {
	return c.moveBatch(ctx, store.Requeue, moves)
}

// CancelBatch cancels many tasks, by their keys or IDs, in few commands. It returns one
// outcome for each, in the same order. Errors are as for [Client.ScheduleBatch].
func (c *Client) CancelBatch(ctx context.Context, ids []string) ([]Outcome, error) {
	return c.removeBatch(ctx, store.Cancel, ids)
}

// PurgeBatch purges many dead letters in few commands, and returns one outcome for each
// ID, in the same order. Errors are as for [Client.ScheduleBatch].
func (c *Client) PurgeBatch(ctx context.Context, ids []string) ([]Outcome, error) {
	return c.removeBatch(ctx, store.Purge, ids)
}

func (c *Client) moveBatch(ctx context.Context, op store.Op, moves []Move) ([]Outcome, error) {
	return c.changeBatch(ctx, op, len(moves), func(i int) (store.Item, error) { return moves[i].storeItem(c.random) })
}

func (c *Client) removeBatch(ctx context.Context, op store.Op, ids []string) ([]Outcome, error) {
	return c.changeBatch(ctx, op, len(ids), func(i int) (store.Item, error) { return store.Item{ID: ids[i]}, checkID(ids[i]) })
}

func (c *Client) changeBatch(ctx context.Context, op store.Op, n int, item func(i int) (store.Item, error)) ([]Outcome, error) {
	x := c.newCommand(ctx, store.Command{Op: op}, n)
	for i := range n {
		x2, err := item(i)
		if err != nil {
			return nil, err
		}
		x.addItem(i, x2)
	}
	return x.do(ctx)
}
