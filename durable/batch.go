package durable

import (
	"context"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
)

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
