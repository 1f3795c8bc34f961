package durable

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// RequeueDead makes pending tasks of all dead letters that match accepts, to run at
// the time w, as [Client.Requeue] does, and returns how many. A nil match accepts
// all. Those that die while it runs are left as they are, so that what fails again
// at once does not keep it going. It reads every dead letter, calls match from one
// goroutine, has some commands under way at a time, and ends at the first error. What
// cannot be decoded a nil match accepts too; any other is not asked, and the error names
// the first one that was left, when all others were moved.
// It costs what [Client.List] does for dead letters, and O(n) to move them.
func (c *Client) RequeueDead(ctx context.Context, w When, match func(DeadLetter) bool) (int, error) {
	if _, err := w.stored(); err != nil {
		return 0, err
	}
	return c.eachDead(ctx, match, func(ctx context.Context, id string) (Outcome, error) { return c.Requeue(ctx, id, w) })
}

// PurgeDead deletes all dead letters that match accepts, and returns how many. It is
// otherwise like [Client.RequeueDead].
func (c *Client) PurgeDead(ctx context.Context, match func(DeadLetter) bool) (int, error) {
	return c.eachDead(ctx, match, c.Purge)
}

func (c *Client) eachDead(ctx context.Context, match func(DeadLetter) bool, do func(context.Context, string) (Outcome, error)) (int, error) {
	begin, err := c.clocks(ctx)
	if err != nil {
		return 0, err
	}
	const together = 32
	ids := make(chan string)
	var all sync.WaitGroup
	var mu sync.Mutex
	var first error
	n := 0
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return first != nil
	}
	for range together {
		all.Go(func() {
			for id := range ids {
				if failed() {
					continue
				}
				out, err := do(ctx, id)
				mu.Lock()
				first = cmp.Or(first, err)
				if out == Moved || out == Removed {
					n++
				}
				mu.Unlock()
			}
		})
	}
	var unread error
	func() {
		defer all.Wait()
		defer close(ids) // also if match ends this goroutine
		for e, err := range c.entries(ctx, store.Filter{State: store.Dead}) {
			if err != nil {
				mu.Lock()
				first = cmp.Or(first, err)
				mu.Unlock()
			}
			if failed() {
				break
			}
			if e.At.Std().After(begin[c.shardOf(e.ID)]) {
				continue
			}
			if match != nil {
				d, err := deadLetter(&e)
				if err != nil {
					unread = cmp.Or(unread, fmt.Errorf("durable: the dead letter %q was left: %w", e.ID, err))
					continue
				}
				if !match(d) {
					continue
				}
			}
			ids <- e.ID
		}
	}()
	return n, cmp.Or(first, unread)
}

// clocks returns what the clocks of all shards show.
func (c *Client) clocks(ctx context.Context) ([]time.Time, error) {
	times := make([]time.Time, c.store.Shards())
	for shard := range times {
		now, err := c.store.Now(ctx, shard)
		if err != nil {
			return nil, explain(err)
		}
		times[shard] = now.Std()
	}
	return times, nil
}
