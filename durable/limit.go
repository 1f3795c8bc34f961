package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// A Limit is for the tasks of one handler in all Workers of a store: how many run at a time,
// and how many begin in a second on average, of which a tenth may begin at once. Zero is any
// number.
type Limit = store.Limit

// SetLimit sets a handler's limit, which the store keeps: the zero Limit takes it away. Tasks
// that run already count. A task over the limit waits in its order, and holds up no other
// handler's. Its permit comes back when the attempt ends, or with the lease of a worker that
// has died. A Worker's own limits hold beside it: see [WithHandlerConcurrency] and [WithRate].
//
// The error is an [ErrInvalid] if the store has more than one shard, since shards do not count
// together, and if 1000 other handlers have a limit.
func (c *Client) SetLimit(ctx context.Context, handler string, l Limit) error {
	if n := c.store.Shards(); n > 1 {
		return invalid("SetLimit: the store has %d shards, and a limit needs a store of one: see its option WithShards", n)
	}
	outcome, err := c.one(ctx, store.Command{Op: store.SetLimit}, store.Item{ID: handler, Limit: &l})
	switch {
	case errors.Is(err, store.ErrInvalid):
		return fmt.Errorf("%w: SetLimit: %w", ErrInvalid, err)
	case outcome == Kept:
		return invalid("SetLimit: %d handlers have a limit already", store.MaxLimits)
	}
	return err
}

// Limits returns the limits by handler, nil if there are none. It costs what [Client.Stats] does.
func (c *Client) Limits(ctx context.Context) (map[string]Limit, error) {
	st, err := c.store.Stats(ctx, 0)
	return st.Limits, explain(err)
}
