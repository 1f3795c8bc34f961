package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// Synced is what [Client.Sync] has done.
type Synced struct {
	// Superseded is true if the store has a higher version of the set. Nothing was changed.
	Superseded bool
	// Outcomes has the outcome of each item, in order: Created, Replaced or Following for a
	// new or changed task, Kept for an unchanged one, and Moved if the rules of its zone have
	// changed and its next run is at another time now.
	Outcomes []Outcome
}

// Sync makes the repeating tasks of a set exactly the items: it schedules each as
// [Client.Schedule] does with [OnlyChanged], and cancels the tasks that the previous Sync of
// the set had. A program calls it when it starts, with all its repeating tasks. A key
// belongs to one set.
//
// The version says which program is newer, for example the number or time of its build. A
// lower version than the set's changes nothing: it is that of an old program that starts
// once more in the middle of a rollout. To go back to older tasks, give them a higher
// version.
//
// A set changes in one step in each shard of the store. After an error, call Sync again: it
// does what is left. A set has at most 1000 items, with a Key each, of 4 MiB in all. The
// error is otherwise an [ErrInvalid], as for an item that is invalid or does not repeat.
// Export and Copy leave out which tasks belong to a set.
func (c *Client) Sync(ctx context.Context, set string, version int64, items []Item) (Synced, error) {
	x, err := c.syncCommand(ctx, set, version, items)
	if err != nil {
		return Synced{}, err
	}
	out, err := x.do(ctx)
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		unknown.again = func(ctx context.Context) ([]Outcome, error) {
			synced, err := c.Sync(ctx, set, version, items)
			return synced.Outcomes, err
		}
	}
	if len(out) < len(items) {
		return Synced{}, err
	}
	synced := Synced{Outcomes: out[:len(items)]}
	for _, outcome := range out[len(items):] {
		synced.Superseded = synced.Superseded || outcome == Kept
	}
	return synced, err
}

const maxSetBytes = 4 << 20

// syncCommand returns a command with one chunk for each shard. The index of a chunk's first
// item, the set, is the number of items and the shard's number.
func (c *Client) syncCommand(ctx context.Context, set string, version int64, items []Item) (*command, error) {
	switch {
	case !store.IsName(set) || version < 0:
		return nil, invalidError("Sync: the set's name %q must have 1 to %d bytes of UTF-8 without control characters, and its version %d must not be negative",
			store.Shorten(set), store.MaxID, version)
	case len(items) > store.MaxSet:
		return nil, invalidError("Sync: the set %q has %d tasks, more than %d: use several sets", set, len(items), store.MaxSet)
	}
	numShards := c.store.Shards()
	x := c.newCommand(ctx, store.Command{Op: store.Sync}, len(items)+numShards)
	for shard := range numShards {
		x.partForShard(shard).chunks = []chunk{{items: []store.Item{{ID: set, Version: version}}, indexes: []int{len(items) + shard}}}
	}
	numBytes := 0
	seen := make(map[string]bool, len(items))
	for i := range items {
		t := &items[i].Task
		switch {
		case t.Key == "" || seen[t.Key]:
			return nil, invalidError("Sync: set %q: the key %q is empty, or two items have it", set, t.Key)
		case !t.repeats():
			return nil, invalidError("Sync: set %q: task %q does not repeat", set, t.Key)
		}
		seen[t.Key] = true
		item, err := c.storeItem(ctx, &items[i])
		if err != nil {
			return nil, fmt.Errorf("Sync: set %q: %w", set, err)
		}
		if item.Next {
			r, _ := t.makeRecurrence(c.schedules)
			item.Anew = r.every == 0 // the phase of a period stays
		}
		if numBytes += len(item.Task.Record); numBytes > maxSetBytes {
			return nil, invalidError("Sync: the tasks of the set %q have more than %d bytes: use several sets", set, maxSetBytes)
		}
		ch := &x.partForShard(c.shardOf(t.Key)).chunks[0]
		ch.items, ch.indexes = append(ch.items, item), append(ch.indexes, i)
	}
	return x, nil
}
