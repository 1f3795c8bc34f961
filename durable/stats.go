package durable

import (
	"context"

	"github.com/tickless/tickless/durable/store"
)

// Stats are the numbers of tasks and the counters, summed over all shards.
type Stats struct {
	store.Stats
	// Paused is the number of paused shards. Either all shards are paused or none,
	// unless a Pause or Resume failed halfway.
	Paused int
}

// Stats returns the sums over all shards, which it reads one after the other.
// O(shards).
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var sum Stats
	for shard := range c.store.Shards() {
		st, err := c.store.Stats(ctx, shard)
		if err != nil {
			return Stats{}, clientError(err)
		}
		if st.Paused {
			sum.Paused++
		}
		sum.Add(st)
	}
	return sum, nil
}
