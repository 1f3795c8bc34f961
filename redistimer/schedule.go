package redistimer

import (
	"context"
	"fmt"
)

// Schedule puts a task into the queue, to run at the time w. If its key has a
// task already, that is replaced, unless an option says otherwise: the outcome
// is Created, Replaced, Kept or, if the task is running, Following.
//
// The context ends the call, whatever the server does. If it ends before the task
// was sent, or if the server refuses it, the task is not scheduled; if it was sent
// and there is no answer the error is an [UnknownError], and the task may be
// scheduled, but not after the context's deadline.
func (c *Client) Schedule(ctx context.Context, t Task, w When, opts ...ScheduleOption) (Outcome, error) {
	config, err := newScheduleConfig("Schedule", opts)
	if err != nil {
		return Unknown, err
	}
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
	shard := c.shardOf(t.Key)
	return c.combiners[shard.index%len(c.combiners)].schedule(ctx,
		&lone{shard: shard, key: t.Key, when: when, record: record, mode: config.mode})
}

func newScheduleConfig(method string, opts []ScheduleOption) (scheduleConfig, error) {
	config := scheduleConfig{mode: modeUpsert}
	for i, o := range opts {
		notNil(method, i, o)
		o.applySchedule(&config)
	}
	if config.clash {
		return config, invalid("OnlyNew, OnlyEarlier and OnlyLater exclude one another, use one of them")
	}
	return config, nil
}

// prepare makes of a task what the script gets. A record begins with when the task
// is due, in 16 digits, which the script puts there itself if it counts from now.
func (c *Client) prepare(t *Task, w When) (when, record string, err error) {
	if err := t.check(); err != nil {
		return "", "", err
	}
	if when, err = w.arg(); err != nil {
		return "", "", fmt.Errorf("task %q: %w", printable(t.Key), err)
	}
	due := when
	if when[0] == '+' {
		due = ""
	}
	record, err = encode(t, due)
	return when, record, err
}

// ScheduleBatch schedules many tasks at the cost of few, and returns an outcome
// for each, in their order. They are sent in scripts of at most 250 tasks, each
// of which is carried out as a whole or not at all; of two items with the same
// key the later counts. If any item is invalid, none is sent. On another error
// the outcome of tasks that were not scheduled, or of which that is not known, is
// Unknown; the error is an [UnknownError] if there are any of the second kind.
func (c *Client) ScheduleBatch(ctx context.Context, items []Item, opts ...ScheduleOption) ([]Outcome, error) {
	config, err := newScheduleConfig("ScheduleBatch", opts)
	if err != nil {
		return nil, err
	}
	x := c.newCommand(scheduleScript, c.shards, len(items), config.mode)
	x.config = config
	for i := range items {
		t := &items[i].Task
		when, record, err := c.prepare(t, items[i].When)
		if err != nil {
			return nil, err
		}
		x.batches[c.shardOf(t.Key).index].add(i, len(record), t.Key, when, record)
	}
	return x.do(ctx)
}
