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
	config := newScheduleConfig(opts)
	if config.replicas > 0 {
		out, err := c.ScheduleBatch(ctx, []Item{{t, w}}, opts...)
		if len(out) == 0 {
			return Unknown, err
		}
		return out[0], err
	}
	when, record, err := c.prepare(&t, w)
	if err != nil {
		return Unknown, err
	}
	shard := c.shardOf(t.Key).index
	return c.combiners[shard%len(c.combiners)].schedule(ctx,
		&lone{shard: shard, key: t.Key, when: when, record: record, mode: config.mode})
}

func newScheduleConfig(opts []ScheduleOption) scheduleConfig {
	config := scheduleConfig{mode: modeUpsert}
	for _, o := range opts {
		o.applySchedule(&config)
	}
	return config
}

// prepare makes of a task what the script gets.
func (c *Client) prepare(t *Task, w When) (when, record string, err error) {
	if err := t.check(); err != nil {
		return "", "", err
	}
	if when, err = w.arg(); err != nil {
		return "", "", fmt.Errorf("task %q: %w", printable(t.Key), err)
	}
	record, err = encode(t)
	return when, record, err
}

// ScheduleBatch schedules many tasks at the cost of few, and returns an outcome
// for each, in their order. They are sent in scripts of at most 250 tasks, each
// of which is carried out as a whole or not at all; of two items with the same
// key the later counts. If any item is invalid, none is sent. On another error
// the outcome of tasks that may or may not have been scheduled is Unknown.
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	config := newScheduleConfig(opts)
	batches := newBatches(len(c.shards), len(items))
	for i := range items {
		t := &items[i].Task
		when, record, err := c.prepare(t, items[i].When)
		if err != nil {
			return nil, err
		}
		batches[c.shardOf(t.Key).index].add(i, len(record), t.Key, when, record)
	}
	errs := make([]error, len(items))
	out := c.batched(ctx, errs, batches, scheduleScript, config, config.mode)
	return out, firstOf(errs)
}
