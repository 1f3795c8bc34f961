package durable

import (
	"context"
	"iter"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A DeadLetter is a run that failed for good: its attempts were used up, its
// handler said [NoRetry], it crashed its workers too often, or it was missed. It
// stays until it is requeued, purged or scheduled again. A task that repeats has one
// for all its runs, however many fail.
type DeadLetter struct {
	// ID names the dead letter in [Client.Requeue] and [Client.Purge]. It is the
	// key, but for the runs of a repeating task, which goes on without them.
	ID   string
	Task Task
	Died time.Time
	Due  time.Time
	// Runs is how many runs have died: more than 1 for a repeating task alone, all
	// of whose runs that died share one dead letter, which tells of the latest.
	Runs     int
	Attempts int // those in which the handler was called, its schedule panicked, or the worker crashed
	Crashes  int
	Failures []Failure // the latest attempts, the oldest first
}

// DeadLetters goes over all dead letters, shard by shard and within a shard by
// the time of their death. It reads them in pages of 100; those that come or go
// meanwhile may be missed, or seen twice. An error of the store ends it, and comes with
// no ID; a dead letter that cannot be decoded comes with an error and its ID, and the
// others follow.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for e, err := range c.entries(ctx, store.Filter{State: store.Dead}) {
			if err != nil {
				yield(DeadLetter{}, err)
				return
			}
			if !yield(deadLetter(&e)) {
				return
			}
		}
	}
}

func deadLetter(e *store.Entry) (DeadLetter, error) {
	d := DeadLetter{
		ID:       e.ID,
		Died:     e.At.Std(),
		Due:      e.Due.Std(),
		Runs:     max(1, e.Runs),
		Attempts: e.Attempts,
		Crashes:  e.Crashes,
		Failures: failuresOf(e),
	}
	var err error
	d.Task, _, err = decode(&e.Task)
	return d, err
}

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
