package durable

import (
	"context"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Stats are the numbers of tasks and the counters of all shards together.
type Stats struct {
	Pending int64 // tasks that wait, including overdue ones
	Overdue int64 // tasks that are due and not claimed
	Running int64
	Dead    int64
	Past    int64 // finished runs that are kept, and one more entry for each key with such runs
	// Unknown is the number of overdue tasks whose handler or schedule no running
	// worker has.
	Unknown int64
	// Astray is the number of tasks that no worker can claim because a part of the
	// store was damaged. Workers on Redis repair them within a minute; elsewhere call
	// [Client.Repair].
	Astray int64
	// Late is how long the most overdue task has been due, or zero.
	Late time.Duration
	// Paused is the number of paused shards: all or none, unless a Pause or Resume
	// failed halfway.
	Paused int

	// Counters count events since the store was created.
	store.Counters
}

// Stats returns the sums over all shards, which it reads one after the other.
// O(shards).
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var sum Stats
	for shard := range c.store.Shards() {
		st, err := c.store.Stats(ctx, shard)
		if err != nil {
			return Stats{}, explain(err)
		}
		sum.Pending += st.Pending
		sum.Overdue += st.Overdue
		sum.Running += st.Running
		sum.Dead += st.Dead
		sum.Past += st.Past
		sum.Unknown += st.Unknown
		sum.Astray += st.Astray
		sum.Late = max(sum.Late, st.Late)
		if st.Paused {
			sum.Paused++
		}
		sum.Counters.Add(st.Counters)
	}
	return sum, nil
}

// Forecast returns how many pending tasks are due before each moment. It returns
// [ErrInvalid] unless the moments are sorted and there are at most 1000.
func (c *Client) Forecast(ctx context.Context, moments ...time.Time) ([]int64, error) {
	if len(moments) > store.MaxForecast || !slices.IsSortedFunc(moments, time.Time.Compare) {
		return nil, invalid("the moments are not sorted, or more than %d", store.MaxForecast)
	}
	stored := make([]store.Time, len(moments))
	for i, t := range moments {
		stored[i] = store.TimeOf(t)
	}
	sum := make([]int64, len(moments))
	for shard := range c.store.Shards() {
		n, err := c.store.Forecast(ctx, shard, stored)
		if err != nil {
			return nil, explain(err)
		}
		for i := range n {
			sum[i] += n[i]
		}
	}
	return sum, nil
}
