package durable

import (
	"context"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Stats are the numbers of all shards.
type Stats struct {
	Pending int64 // tasks that wait, those included that are overdue
	Overdue int64 // tasks that are due and not claimed
	Running int64
	Dead    int64
	Past    int64 // runs that are kept, and one more entry for each key that has any
	// Unknown are overdue tasks that nobody can run: no worker that is there has their
	// handler, or their schedule.
	Unknown int64
	// Astray are tasks that no worker gets, since a part of the store was damaged. Workers
	// on Redis put them right within a minute; else [Client.Repair] does.
	Astray int64
	// Late is how long the task has been due that waits longest; zero if there is
	// none.
	Late time.Duration
	// Paused is how many shards are paused: all or none, unless a Pause or Resume has
	// failed half way.
	Paused int

	// Counters count what has happened since the store was made.
	store.Counters
}

// Stats returns the numbers, summed over the shards, which are read one after the
// other. O(shards).
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

// Forecast returns, for each of the moments, how many pending tasks are due before it.
// It returns [ErrInvalid] unless the moments ascend, 1000 at most.
func (c *Client) Forecast(ctx context.Context, moments ...time.Time) ([]int64, error) {
	if len(moments) > store.MaxForecast || !slices.IsSortedFunc(moments, time.Time.Compare) {
		return nil, invalid("the moments do not ascend, or are more than %d", store.MaxForecast)
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
