package durable

import (
	"context"

	"github.com/tickless/tickless/durable/store"
)

// A dead letter is a run that failed for good: it has used all attempts, its handler
// returned [NoRetry], it crashed its workers too often, or it was missed. It stays
// until it is requeued, purged or scheduled again. [Client.List] with the State [Dead]
// lists dead letters. A repeating task has at most one, for its latest failed run.

// Requeue makes a dead letter a pending task again, due at the time w, with its full
// number of attempts. For a repeating task, Requeue repeats the latest failed run once,
// as a separate task that may run at the same time as the repeating one. Cancel it by
// its [Info.ID]. The outcome is Moved, or Absent if there is no such dead letter.
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

// checkID checks a key or the ID of a dead letter or requeued run, as stores do.
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
