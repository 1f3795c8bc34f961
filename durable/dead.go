package durable

import (
	"context"

	"github.com/tickless/tickless/durable/store"
)

// A dead letter is a run that failed for good: its attempts were used up, its handler said
// [NoRetry], it crashed its workers too often, or it was missed. It stays until it is
// requeued, purged or scheduled again. [Client.List] with the State [Dead] lists them. A task
// that repeats has one for all its runs, however many fail.

// Requeue makes a dead letter a pending task again, to run at the time w, with
// all its attempts before it. Of a repeating task's runs it is the latest one, once: a
// task of its own, which may run while the repeating one does. [Info.ID] says how it is
// cancelled. The outcome is Moved, or Absent if there is no such dead letter.
func (c *Client) Requeue(ctx context.Context, id string, w When) (Outcome, error) {
	item, err := Move{id, w}.stored()
	if err != nil {
		return Unknown, err
	}
	return c.one(ctx, store.Command{Op: store.Requeue}, item)
}

// Purge deletes a dead letter. The outcome is Removed or Absent.
func (c *Client) Purge(ctx context.Context, id string) (Outcome, error) {
	if err := checkID(id); err != nil {
		return Unknown, err
	}
	return c.one(ctx, store.Command{Op: store.Purge}, store.Item{ID: id})
}

// checkID lets the ids of requeued runs pass too, as stores do.
func checkID(id string) error {
	const longest = 1 + 20 // a NUL and a time
	key := store.KeyOf(id)
	if err := checkKey(key); err != nil {
		return err
	}
	if n := len(id) - len(key); n > longest {
		return invalid("the id %.80q has %d bytes from its NUL on, more than %d", id, n, longest)
	}
	return nil
}
