package durable

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A dead letter is a run that failed for good, for example because it used all its
// attempts. It stays until it is requeued, purged or scheduled again. A repeating task
// has at most one dead letter, for its latest failed run.

// Requeue makes a dead letter a pending task, due at the time w, with its full number
// of attempts. The outcome is Moved, or Absent if there is no such dead letter.
//
// The dead letter of a repeating task becomes a separate task, with its own [Info.ID],
// that runs once. The repeating task may run at the same time.
func (c *Client) Requeue(ctx context.Context, id string, w When, opts ...ChangeOption) (Outcome, error) {
	item, err := Move{id, w}.storeItem(c.random)
	if err != nil {
		return Unknown, err
	}
	return c.doOneChange(ctx, "Requeue", store.Requeue, item, opts)
}

// Purge deletes a dead letter, or a finished run that is kept. The outcome is Removed, or Absent
// if there is none, or the run has expired.
func (c *Client) Purge(ctx context.Context, id string, opts ...ChangeOption) (Outcome, error) {
	return c.doOneChange(ctx, "Purge", store.Purge, store.Item{ID: id}, opts)
}

// checkID returns an error unless id has the form of a key, or of the ID of a dead
// letter, a requeued or a finished run. Older versions allowed keys that are not text.
func checkID(id string) error {
	c := store.Command{Op: store.Purge, Items: []store.Item{{ID: id}}}
	if err := c.Check(&store.Stamp{Sender: "check", Number: 1}); err != nil {
		return invalidError("%v", err)
	}
	return nil
}

// A BulkOption changes a command on all tasks that match a filter.
type BulkOption interface{ applyToBulk(*bulk) }

type bulkOption func(*bulk)

func (f bulkOption) applyToBulk(b *bulk) { f(b) }

// AtMost limits how many tasks the command changes. It panics if n is not positive.
func AtMost(n int) BulkOption {
	checkRange("AtMost", n > 0, n, "positive")
	return bulkOption(func(b *bulk) { b.most = n })
}

// Progress sets a function that the command calls after every thousand tasks or so, with the
// number of tasks that it has changed so far. It panics if f is nil.
func Progress(f func(changed int)) BulkOption {
	if f == nil {
		panic("durable: Progress: nil function")
	}
	return bulkOption(func(b *bulk) { b.progress = f })
}

// A bulk is a command on all tasks that match a filter.
type bulk struct {
	most     int // 0: any number
	progress func(changed int)
}

// answerGrace is how long a command on all tasks that match a filter waits for the answer to
// its last step, if the context ends meanwhile. Otherwise the number would be too small.
const answerGrace = time.Second

// RequeueAll requeues dead letters that match a filter, due at the time w, and returns how
// many, also after an error. It stops at the first error, except that it skips damaged tasks.
// Requeued runs that fail again during the call stay dead letters. After the context's end it
// takes up to a second to find out how many its last step has changed.
//
// The filter's State must be zero or Dead. An empty filter is refused with an [ErrInvalid]:
// to requeue all dead letters, set State. The cost is that of [Client.List] and of O(n)
// writes.
func (c *Client) RequeueAll(ctx context.Context, f Filter, w When, opts ...BulkOption) (int, error) {
	if _, err := w.storeWhen(); err != nil {
		return 0, err
	}
	return c.changeAll(ctx, "RequeueAll", f, opts, []State{Dead}, func(ids []string) ([]Outcome, error) {
		moves := make([]Move, len(ids))
		for i, id := range ids {
			moves[i] = Move{id, w}
		}
		return c.RequeueBatch(ctx, moves)
	})
}

// PurgeAll deletes dead letters that match a filter or, if its State is Past, finished runs
// that are kept, and returns how many. Otherwise it is like [Client.RequeueAll].
func (c *Client) PurgeAll(ctx context.Context, f Filter, opts ...BulkOption) (int, error) {
	states := []State{Dead}
	if f.State == Past {
		states[0] = Past
	}
	return c.changeAll(ctx, "PurgeAll", f, opts, states, func(ids []string) ([]Outcome, error) { return c.PurgeBatch(ctx, ids) })
}

// CancelAll cancels pending and running tasks that match a filter, and returns how many. The
// filter's State must be zero, Pending or Running. Otherwise it is like [Client.RequeueAll].
func (c *Client) CancelAll(ctx context.Context, f Filter, opts ...BulkOption) (int, error) {
	return c.changeAll(ctx, "CancelAll", f, opts, []State{Pending, Running}, func(ids []string) ([]Outcome, error) { return c.CancelBatch(ctx, ids) })
}

// changeAll calls do with the ids of the tasks that match a filter and have one of the states.
func (c *Client) changeAll(ctx context.Context, function string, f Filter, opts []BulkOption, states []State, do func(ids []string) ([]Outcome, error)) (changed int, err error) {
	var b bulk
	for i, o := range opts {
		panicIfNil(function, i, o)
		o.applyToBulk(&b)
	}
	switch {
	case f == Filter{}:
		return 0, invalidError("%s: the filter is empty: to select all tasks, set its State", function)
	case f.State != 0 && !slices.Contains(states, f.State):
		return 0, invalidError("%s: the filter's State is %v, but must be one of %v", function, f.State, states)
	case f.State != 0:
		states = []State{f.State}
	}
	startedAt, err := c.latestNow(ctx)
	if err != nil {
		return 0, err
	}
	const batchSize = 1000
	var ids []string
	var damaged error // for the first damaged task, which is skipped
	send := func() error {
		outcomes, err := do(ids)
		var unknown *UnknownError
		if errors.As(err, &unknown) {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerGrace)
			if again, againErr := unknown.Again(grace); againErr == nil {
				outcomes, err = again, ctx.Err()
			}
			cancel()
		}
		for _, o := range outcomes {
			if o == Moved || o == Removed || o == Stopping {
				changed++
			}
		}
		if ids = nil; b.progress != nil {
			b.progress(changed)
		}
		return err
	}
	found := 0
	for _, f.State = range states {
		f := f
		if f.State == Dead && (f.To.IsZero() || f.To.After(startedAt)) {
			f.To = startedAt.Add(time.Microsecond) // runs that fail again during the call do not count
		}
		for info, err := range c.List(ctx, f) {
			switch {
			case info.ID == "":
				return changed, errors.Join(err, damaged)
			case errors.Is(err, store.ErrDamaged):
				damaged = cmp.Or(damaged, err)
				continue
			}
			ids, found = append(ids, info.ID), found+1
			if len(ids) < batchSize && found != b.most {
				continue
			}
			if err := send(); err != nil || found == b.most {
				return changed, errors.Join(err, damaged)
			}
		}
	}
	if len(ids) > 0 {
		err = send()
	}
	return changed, errors.Join(err, damaged)
}

// latestNow returns the latest time that the clock of any shard shows.
func (c *Client) latestNow(ctx context.Context) (time.Time, error) {
	var latest store.Time
	for shard := range c.store.Shards() {
		now, err := c.store.Now(ctx, shard)
		if err != nil {
			return time.Time{}, clientError(err)
		}
		latest = max(latest, now)
	}
	return latest.Std(), nil
}
