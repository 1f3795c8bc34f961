package durable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// PauseTask stops the task with a key or an [Info.ID], repeating or not, from running until
// [Client.ResumeTask]. It keeps its time, its attempts and its failures. Schedule does not end the pause, and
// [Client.Reschedule] lets the task run once. The outcome is Moved for a pending task, and
// Following for a running one: the attempt continues, and what comes after it waits. It is Kept
// if the task is paused already, and Absent if there is no such task or it is a dead letter.
func (c *Client) PauseTask(ctx context.Context, id string, opts ...ChangeOption) (Outcome, error) {
	return c.doOneChange(ctx, "PauseTask", store.PauseTask, store.Item{ID: id}, opts)
}

// ResumeTask ends the pause of the task with a key or an [Info.ID]. If its time has passed
// meanwhile, it runs at once; of the runs of a repeating task that were due, [Task.Missed] says
// which. The outcome is Moved, Following if the task is running, Kept if it is not paused, or
// Absent.
//
// A repeating task that was paused by an older version, or rescheduled to the end of the year
// 2199, skips the runs that were due. ResumeTask reads such a task and then reschedules it, unless
// another client has changed it between these two steps: then the outcome is Changed.
func (c *Client) ResumeTask(ctx context.Context, id string, opts ...ChangeOption) (Outcome, error) {
	outcome, err := c.doOneChange(ctx, "ResumeTask", store.ResumeTask, store.Item{ID: id}, opts)
	if outcome != Kept || err != nil {
		return outcome, err
	}
	info, err := c.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return Absent, nil
	case err != nil:
		return Unknown, err
	case !info.Paused || info.State > Running:
		return Kept, nil
	case !info.Task.repeats():
		return Changed, nil
	}
	now, err := c.store.Now(ctx, c.shardOf(id))
	if err != nil {
		return Unknown, clientError(err)
	}
	at, err := info.Task.firstRun(now, c.schedules)
	if err != nil {
		return Unknown, err
	}
	if end := info.Task.End; !end.IsZero() && at.Std().After(end) {
		return Unknown, invalidError("task %q never runs from %v on", id, now.Std())
	}
	return c.Reschedule(ctx, id, At(at.Std()), IfVersion(info.Version))
}

// A HandlerPause says since when a handler is paused, by the store's clock, and why.
type HandlerPause struct {
	Since time.Time `json:"since"`
	Note  string    `json:"note,omitempty"`
}

func pauseOf(p store.HandlerPause) HandlerPause { return HandlerPause{p.Since.Std(), p.Note} }

// PauseHandler stops all Workers of the store from claiming tasks of a handler, until
// [Client.ResumeHandler]. Its running tasks end as usual, and tasks can be scheduled. The
// tasks that wait cost Workers nothing, and do not delay other handlers. [Client.Check], the
// Workers' logs and the Info of each waiting task say that the handler is paused.
//
// The note says why, in at most 400 bytes without control characters. If the handler is paused
// already, only the note changes. The error is an [ErrInvalid] if 1000 other handlers are
// paused or have a limit. After an error the handler may be paused in some of the store's
// shards; the error wraps [ErrNotDone] only if it is paused in none. O(shards).
func (c *Client) PauseHandler(ctx context.Context, handler, note string) error {
	outcomes, err := c.sendToAllShards(ctx, store.Command{Op: store.PauseHandler}, store.Item{ID: handler, Note: note})
	if err == nil && slices.Contains(outcomes, Kept) {
		return invalidError("PauseHandler: %d handlers are paused or have a limit already", store.MaxLimits)
	}
	return err
}

// ResumeHandler ends the pause of a handler. Tasks that became due meanwhile run now. It
// returns nil if the handler is not paused. Errors are as of [Client.PauseHandler]. O(shards).
func (c *Client) ResumeHandler(ctx context.Context, handler string) error {
	_, err := c.sendToAllShards(ctx, store.Command{Op: store.ResumeHandler}, store.Item{ID: handler})
	return err
}

// PausedHandlers returns the handlers that are paused, or nil if there are none. It costs as
// much as [Client.Stats].
func (c *Client) PausedHandlers(ctx context.Context) (map[string]HandlerPause, error) {
	st, err := c.Stats(ctx)
	if err != nil || len(st.PausedHandlers) == 0 {
		return nil, err
	}
	paused := make(map[string]HandlerPause)
	for h, p := range st.PausedHandlers {
		paused[h] = pauseOf(p)
	}
	return paused, nil
}
