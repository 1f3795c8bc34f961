package redistimer

import (
	"context"
	"fmt"
)

// Schedule puts a task into the queue, to run at the time w. If its key has a
// task already, that is replaced, unless an option says otherwise: the outcome
// is Created, Replaced, Kept or, if the task is running, Following.
//
// If the error is not nil the task may have been scheduled all the same, since
// the reply may have been lost; calling Schedule again does no harm.
func (c *Client) Schedule(ctx context.Context, t Task, w When, opts ...ScheduleOption) (Outcome, error) {
	out, err := c.ScheduleBatch(ctx, []Item{{t, w}}, opts...)
	if len(out) == 0 {
		return Unknown, err
	}
	return out[0], err
}

// ScheduleBatch schedules many tasks at the cost of few, and returns an outcome
// for each, in their order. They are sent in scripts of at most 250 tasks, each
// of which is carried out as a whole or not at all; of two items with the same
// key the later counts. If any item is invalid, none is sent. On another error
// the outcome of tasks that may or may not have been scheduled is Unknown.
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	var config scheduleConfig
	config.mode = modeUpsert
	for _, o := range opts {
		o.applySchedule(&config)
	}
	batches := make([]batch, len(c.shards))
	for i := range items {
		it := &items[i]
		if err := it.Task.check(); err != nil {
			return nil, err
		}
		when, err := it.When.arg()
		if err != nil {
			return nil, fmt.Errorf("task %q: %w", printable(it.Task.Key), err)
		}
		record, err := encode(&it.Task)
		if err != nil {
			return nil, err
		}
		b := &batches[c.shardOf(it.Task.Key).index]
		b.add(i, len(record), it.Task.Key, when, record)
	}
	return c.batched(ctx, len(items), batches, scheduleScript, config, config.mode)
}
