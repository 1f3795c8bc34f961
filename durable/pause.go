package durable

import (
	"context"
	"errors"

	"github.com/tickless/tickless/durable/store"
)

// PauseTask stops a repeating task from running until ResumeTask. The outcome is Moved,
// or Following if the task is running. A running attempt continues, but is not tried
// again if it fails. Scheduling the key again, for example with another Cron, leaves
// the task paused; Reschedule ends the pause. The error is an [ErrInvalid] if the task
// does not repeat.
//
// PauseTask and ResumeTask read the task and then reschedule it, in two commands. A
// command of another client between the two, for example a Reschedule, may be undone.
func (c *Client) PauseTask(ctx context.Context, key string) (Outcome, error) {
	info, err := c.Get(ctx, key)
	if err != nil {
		return absent(err)
	}
	if !info.Task.repeats() && !info.Following {
		return Unknown, invalid("PauseTask: the task %q does not repeat", key)
	}
	return c.Reschedule(ctx, key, At(store.Farthest.Std()))
}

// ResumeTask ends the pause of a task. The task next runs as [Next] says; runs that
// were due during the pause are skipped. The outcome is Moved, Following if the task is
// running, or Kept if the task is not paused.
func (c *Client) ResumeTask(ctx context.Context, key string) (Outcome, error) {
	info, err := c.Get(ctx, key)
	if err != nil {
		return absent(err)
	}
	if !info.Paused {
		return Kept, nil
	}
	now, err := c.store.Now(ctx, c.shardOf(key))
	if err != nil {
		return Unknown, explain(err)
	}
	at, err := info.Task.first(now, c.schedules)
	if err != nil {
		return Unknown, err
	}
	return c.Reschedule(ctx, key, At(at.Std()))
}

// absent returns the outcome of a command for a task that Get did not return.
func absent(err error) (Outcome, error) {
	if errors.Is(err, ErrNotFound) {
		return Absent, nil
	}
	return Unknown, err
}
