package durable

import (
	"context"
	"errors"

	"github.com/tickless/tickless/durable/store"
)

// PauseTask stops a repeating task from running until [Client.ResumeTask] or
// [Client.Reschedule]. Schedule does not end the pause. The outcome is Moved, or
// Following if the task is running: the attempt continues, but is not tried again if it
// fails. The error is an [ErrInvalid] if the task does not repeat.
//
// PauseTask and ResumeTask read the task and then reschedule it. They may undo a
// command that another client sends between these two steps.
func (c *Client) PauseTask(ctx context.Context, key string) (Outcome, error) {
	info, err := c.Get(ctx, key)
	if err != nil {
		return outcomeOfGetError(err)
	}
	if !info.Task.repeats() && !info.Following {
		return Unknown, invalidError("PauseTask: the task %q does not repeat", key)
	}
	return c.Reschedule(ctx, key, At(store.Farthest.Std()))
}

// ResumeTask ends the pause of a task. Runs that were due during the pause are skipped.
// The outcome is Moved, Following if the task is running, or Kept if the task is not
// paused.
func (c *Client) ResumeTask(ctx context.Context, key string) (Outcome, error) {
	info, err := c.Get(ctx, key)
	if err != nil {
		return outcomeOfGetError(err)
	}
	if !info.Paused {
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
	return c.Reschedule(ctx, key, At(at.Std()))
}

// outcomeOfGetError returns what PauseTask and ResumeTask return if Get fails with err.
func outcomeOfGetError(err error) (Outcome, error) {
	if errors.Is(err, ErrNotFound) {
		return Absent, nil
	}
	return Unknown, err
}
