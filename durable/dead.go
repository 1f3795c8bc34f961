package durable

import (
	"cmp"
	"context"
	"errors"
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
func (c *Client) Requeue(ctx context.Context, id string, w When) (Outcome, error) {
	item, err := Move{id, w}.storeItem()
	if err != nil {
		return Unknown, err
	}
	return c.doOneItem(ctx, store.Command{Op: store.Requeue}, item)
}

// Purge deletes a dead letter. The outcome is Removed or Absent.
func (c *Client) Purge(ctx context.Context, id string) (Outcome, error) {
	if err := checkID(id); err != nil {
		return Unknown, err
	}
	return c.doOneItem(ctx, store.Command{Op: store.Purge}, store.Item{ID: id})
}

// checkID returns an error unless id has the form of a key, or of the ID of a dead
// letter or requeued run. Older versions allowed keys that are not text.
func checkID(id string) error {
	c := store.Command{Op: store.Cancel, Items: []store.Item{{ID: id}}}
	if err := c.Check(&store.Stamp{Sender: "check", Number: 1}); err != nil {
		return invalidError("%v", err)
	}
	return nil
}

// RequeueAll requeues all dead letters that match a filter, due at the time w, and
// returns how many. It ignores the filter's State, and stops at the first error.
// Requeued runs that fail again during the call stay dead letters. The cost is that of
// [Client.List] and of O(n) writes.
func (c *Client) RequeueAll(ctx context.Context, f Filter, w When) (int, error) {
	if _, err := w.storeWhen(); err != nil {
		return 0, err
	}
	return c.forEachDeadBatch(ctx, f, func(ids []string) ([]Outcome, error) {
		moves := make([]Move, len(ids))
		for i, id := range ids {
			moves[i] = Move{id, w}
		}
		return c.RequeueBatch(ctx, moves)
	})
}

// PurgeAll deletes all dead letters that match a filter, and returns how many.
// Otherwise it is like [Client.RequeueAll].
func (c *Client) PurgeAll(ctx context.Context, f Filter) (int, error) {
	return c.forEachDeadBatch(ctx, f, func(ids []string) ([]Outcome, error) { return c.PurgeBatch(ctx, ids) })
}

func (c *Client) forEachDeadBatch(ctx context.Context, f Filter, do func(ids []string) ([]Outcome, error)) (n int, err error) {
	f.State = Dead
	startedAt, err := c.latestNow(ctx)
	if err != nil {
		return 0, err
	}
	if f.To.IsZero() || f.To.After(startedAt) {
		f.To = startedAt.Add(time.Microsecond)
	}
	const batchSize = 1000
	var ids []string
	var damaged error // for the first damaged task, which is skipped
	sendBatch := func() error {
		out, err := do(ids)
		for _, o := range out {
			if o == Moved || o == Removed {
				n++
			}
		}
		ids = nil
		return err
	}
	for info, err := range c.List(ctx, f) {
		switch {
		case info.ID == "":
			return n, err
		case errors.Is(err, store.ErrDamaged):
			damaged = cmp.Or(damaged, err)
			continue
		}
		if ids = append(ids, info.ID); len(ids) == batchSize {
			if err := sendBatch(); err != nil {
				return n, err
			}
		}
	}
	return n, errors.Join(sendBatch(), damaged)
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
