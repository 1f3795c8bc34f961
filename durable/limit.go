package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// A Limit limits the tasks of one handler, counted over all Workers of a store: how
// many run at a time, and how many start in a second on average. Up to a tenth of
// that number may start at once. Zero means any number.
type Limit = store.Limit

// SetLimit sets a handler's limit in the store. The zero Limit removes it. Running
// tasks count too. Tasks beyond the limit wait, in order, and do not delay tasks of
// other handlers. One of them may start when a running attempt ends, or when the lease
// of a worker that died expires. A Worker's own limits apply too: see
// [WithHandlerConcurrency] and [WithRate].
//
// The error is an [ErrInvalid] if 1000 other handlers already have a limit, or if the
// store has more than one shard: shards cannot count together.
//
// The store keeps the limits beside its tasks. If a Redis server is emptied, they are
// gone, so set them again whenever a program starts.
func (c *Client) SetLimit(ctx context.Context, handler string, l Limit) error {
	if n := c.store.Shards(); n > 1 {
		return invalidError("SetLimit: the store has %d shards, and a limit needs a store of one: see its option WithShards", n)
	}
	outcome, err := c.doOne(ctx, store.Command{Op: store.SetLimit}, store.Item{ID: handler, Limit: &l})
	switch {
	case errors.Is(err, store.ErrInvalid):
		return fmt.Errorf("%w: SetLimit: %w", ErrInvalid, err)
	case outcome == Kept:
		return invalidError("SetLimit: %d handlers have a limit already", store.MaxLimits)
	}
	return err
}

// Limits returns the limits by handler, or nil if there are none. It costs as much as
// [Client.Stats].
func (c *Client) Limits(ctx context.Context) (map[string]Limit, error) {
	st, err := c.store.Stats(ctx, 0)
	return st.Limits, clientError(err)
}
