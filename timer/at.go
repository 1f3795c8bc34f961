package timer

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// Now returns the time on the Scheduler's clock.
func (s *Scheduler) Now() time.Time {
	s.mustBeMade()
	return s.clock.Now()
}

// Wall returns the time of day on the Scheduler's clock. It has no monotonic reading,
// which would not follow when the clock is set.
func (s *Scheduler) Wall() time.Time {
	s.mustBeMade()
	if c, ok := s.clock.(clock.Wall); ok {
		return c.Wall()
	}
	return s.clock.Now().Round(0)
}

// Deadline returns the moment for which the timer is set, on the Scheduler's clock and
// without the slack. It reports false if the timer is not pending. O(1).
func (h Handle) Deadline() (time.Time, bool) {
	if h.sh == nil {
		return time.Time{}, false
	}
	h.sh.mu.Lock()
	at, ok := h.sh.wheel.Deadline(h.id)
	h.sh.mu.Unlock()
	if !ok {
		return time.Time{}, false
	}
	return h.sh.s.at(at), true
}

// Deadline returns the moment for which the Timer is set, on the Scheduler's clock and
// without the slack. It reports false if the Timer is not pending, and for one of
// package time's, which the package-level functions make inside a testing/synctest
// bubble. O(1).
func (t *Timer) Deadline() (time.Time, bool) {
	if t.sh == nil {
		return time.Time{}, false
	}
	t.sh.mu.Lock()
	at, ok := t.deadlineLocked()
	t.sh.mu.Unlock()
	if !ok {
		return time.Time{}, false
	}
	return t.sh.s.at(at), true
}

func (t *Timer) deadlineLocked() (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.state.Load() {
	case pending:
		return t.deadline, true
	case stopped:
		return 0, false
	}
	if f := t.sh.fallbacks.byID[t.id]; f != nil {
		return int64(f.at.Sub(t.sh.s.epoch)), true
	}
	return t.sh.wheel.Deadline(t.id)
}
