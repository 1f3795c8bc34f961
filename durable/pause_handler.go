package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

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
	return handlerError("PauseHandler", err)
}

// ResumeHandler ends the pause of a handler. Tasks that became due meanwhile run now. It
// returns nil if the handler is not paused. Errors are as of [Client.PauseHandler]. O(shards).
func (c *Client) ResumeHandler(ctx context.Context, handler string) error {
	_, err := c.sendToAllShards(ctx, store.Command{Op: store.ResumeHandler}, store.Item{ID: handler})
	return handlerError("ResumeHandler", err)
}

func handlerError(method string, err error) error {
	if errors.Is(err, store.ErrInvalid) {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, method, err)
	}
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
