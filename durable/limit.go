package durable

import (
	"context"

	"github.com/tickless/tickless/durable/store"
)

// A Limit limits how many tasks of a handler run at a time, and how many start in a
// second on average, over all Workers of a store. Zero means no limit.
type Limit struct {
	Concurrency int
	Rate        float64 // from 0.000001 to a million
	// GroupConcurrency and GroupRate limit the tasks of each [Task.Group] of the handler in
	// the same way. They do not limit tasks without a group.
	GroupConcurrency int     `json:",omitempty"`
	GroupRate        float64 `json:",omitempty"`
}

// SetLimit sets the limit of a handler in the store. The zero Limit removes it. Tasks
// beyond the limit wait, in order, and do not delay tasks of other handlers or groups. A Worker's
// own limits apply too. A limit counts leases: a handler that still runs after its lease was lost,
// or given up because it hangs, is not counted.
//
// The error is an [ErrInvalid] if the store has more than one shard, or if 1000 other
// handlers have a limit or are paused. Set limits whenever a program starts: a store that was
// emptied has none.
func (c *Client) SetLimit(ctx context.Context, handler string, l Limit) error {
	if n := c.store.Shards(); n > 1 {
		return invalidError("SetLimit: the store has %d shards, and a limit needs a store of one: see its option WithShards", n)
	}
	limit := store.Limit(l)
	outcome, err := c.doOneItem(ctx, store.Command{Op: store.SetLimit}, store.Item{ID: handler, Limit: &limit})
	if outcome == Kept {
		return invalidError("SetLimit: %d handlers have a limit or are paused already", store.MaxLimits)
	}
	return err
}

// Limits returns the limits by handler, or nil if there are none. It costs as much as
// [Client.Stats].
func (c *Client) Limits(ctx context.Context) (map[string]Limit, error) {
	st, err := c.store.Stats(ctx, 0)
	if err != nil || len(st.Limits) == 0 {
		return nil, clientError(err)
	}
	limits := make(map[string]Limit)
	for handler, l := range st.Limits {
		limits[handler] = Limit(l)
	}
	return limits, nil
}
