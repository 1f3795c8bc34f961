package timer

import (
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Handle names one timer that was started with [Scheduler.Start]: a small
// comparable value, to be kept and copied freely. It stays valid for ever, and
// once its timer has fired or was stopped it does nothing; it never touches
// another timer. The zero Handle names no timer.
type Handle struct {
	sh *shard
	id timingwheel.ID
}

// Stop keeps the timer from firing. It reports true if the callback will never
// run because of this call, and false if there was nothing to stop: the timer
// has fired, was stopped before, or was handed back by Close. It does not wait
// for a callback that runs. O(1).
func (h Handle) Stop() bool {
	if h.sh == nil {
		return false
	}
	h.sh.mu.Lock()
	ok := h.sh.stopLocked(h.id)
	h.sh.unlock()
	return ok
}

// Reset makes the pending timer fire after d from now instead, at once if d is
// zero or less. It reports false, and does nothing, if the timer has fired, was
// stopped, or was handed back by Close. O(1); moving a timer later costs less
// than stopping it and starting another.
func (h Handle) Reset(d time.Duration) bool {
	if h.sh == nil {
		return false
	}
	now := h.sh.s.now()
	h.sh.mu.Lock()
	ok := h.sh.resetLocked(now, h.id, d)
	h.sh.unlock()
	return ok
}
