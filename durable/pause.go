package durable

import (
	"context"
	"errors"

	"github.com/tickless/tickless/durable/store"
)

// PauseTask stops a task, repeating or not, from running until [Client.ResumeTask]. It keeps
// its time, its attempts and its failures. Schedule does not end the pause, and
// [Client.Reschedule] lets the task run once. The outcome is Moved for a pending task, and
// Following for a running one: the attempt continues, and what comes after it waits. It is Kept
// if the task is paused already, and Absent if there is no such task or it is a dead letter.
func (c *Client) PauseTask(ctx context.Context, key string, opts ...ChangeOption) (Outcome, error) {
	if err := checkID(key); err != nil {
		return Unknown, err
	}
	return c.doOneChange(ctx, "PauseTask", store.PauseTask, store.Item{ID: key}, opts)
}

// ResumeTask ends the pause of a task. If its time has passed meanwhile, it runs at once; of
// the runs of a repeating task that were due, [Task.Missed] says which. The outcome is Moved,
// Following if the task is running, Kept if it is not paused, or Absent.
//
// A repeating task that was paused by an older version, or rescheduled to the end of the year
// 2199, skips the runs that were due. ResumeTask reads such a task and then reschedules it, unless
// another client has changed it between these two steps: then the outcome is Changed.
func (c *Client) ResumeTask(ctx context.Context, key string, opts ...ChangeOption) (Outcome, error) {
	if err := checkID(key); err != nil {
		return Unknown, err
	}
	outcome, err := c.doOneChange(ctx, "ResumeTask", store.ResumeTask, store.Item{ID: key}, opts)
	if outcome != Kept || err != nil {
		return outcome, err
	}
	info, err := c.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return Absent, nil
	case err != nil:
		return Unknown, err
	case !info.Paused || info.State > Running:
		return Kept, nil
	}
	now, err := c.store.Now(ctx, c.shardOf(key))
	if err != nil {
		return Unknown, clientError(err)
	}
	at, err := info.Task.firstRun(now, c.schedules)
	if err != nil {
		return Unknown, err
	}
	if end := info.Task.End; !end.IsZero() && at.Std().After(end) {
		return Unknown, invalidError("task %q never runs from %v on", key, now.Std())
	}
	return c.Reschedule(ctx, key, At(at.Std()), IfVersion(info.Version))
}
