package durable

import (
	"context"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// RequeueAll requeues all dead letters that match a filter, due at the time w, as
// [Client.Requeue] does, and returns how many. It ignores the filter's State. Runs that
// become dead letters during the call stay, so that a task that fails at once does not
// prolong the call for ever. RequeueAll ends at the first error. The cost is that of
// [Client.List], and O(n) writes.
func (c *Client) RequeueAll(ctx context.Context, f Filter, w When) (int, error) {
	if _, err := w.stored(); err != nil {
		return 0, err
	}
	return c.eachDead(ctx, f, func(ids []string) ([]Outcome, error) {
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
	return c.eachDead(ctx, f, func(ids []string) ([]Outcome, error) { return c.PurgeBatch(ctx, ids) })
}

func (c *Client) eachDead(ctx context.Context, f Filter, do func(ids []string) ([]Outcome, error)) (n int, err error) {
	f.State = Dead
	begin, err := c.latest(ctx)
	if err != nil {
		return 0, err
	}
	if f.To.IsZero() || f.To.After(begin) {
		f.To = begin.Add(time.Microsecond)
	}
	const together = 1000
	var ids []string
	flush := func() error {
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
		if info.ID == "" {
			return n, err
		}
		if ids = append(ids, info.ID); len(ids) == together {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	return n, flush()
}

// latest returns the latest time that the clock of any shard shows.
func (c *Client) latest(ctx context.Context) (time.Time, error) {
	var latest store.Time
	for shard := range c.store.Shards() {
		now, err := c.store.Now(ctx, shard)
		if err != nil {
			return time.Time{}, explain(err)
		}
		latest = max(latest, now)
	}
	return latest.Std(), nil
}
