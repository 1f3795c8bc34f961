package redistimer

import "context"

// Cancel takes the task with the key out: the outcome is Removed if it will not
// run because of this call, Stopping if it is running and was asked to stop, and
// Absent if there is no such task, or it is a dead letter. A repeating task does
// not repeat any more in either case.
func (c *Client) Cancel(ctx context.Context, key string) (Outcome, error) {
	if err := checkKey(key); err != nil {
		return Unknown, err
	}
	return c.single(ctx, cancelScript, key, key)
}

// CancelBatch cancels many tasks at the cost of few, and returns an outcome for
// each.
func (c *Client) CancelBatch(ctx context.Context, keys []string) ([]Outcome, error) {
	x := c.newCommand(cancelScript, c.shards, len(keys))
	for i, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		x.batches[c.shardOf(key).index].add(i, 0, key)
	}
	return x.do(ctx)
}

// Reschedule moves a pending task to another time: the outcome is Moved. If it
// is running, it runs again at that time, and the outcome is Following. It is
// Absent if there is no such task, or it is a dead letter.
func (c *Client) Reschedule(ctx context.Context, key string, w When) (Outcome, error) {
	if err := checkKey(key); err != nil {
		return Unknown, err
	}
	when, err := w.arg()
	if err != nil {
		return Unknown, err
	}
	return c.single(ctx, rescheduleScript, key, key, when)
}
