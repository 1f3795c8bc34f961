package timer

import "time"

// Now returns the time on the Scheduler's clock.
func (s *Scheduler) Now() time.Time {
	s.mustBeMade()
	return s.clock.Now()
}

// StartAt is [Scheduler.Start] for a moment instead of a delay: the delay is t less
// Now, and so f runs at once if t has passed. If the wall clock is set afterwards the
// timer does not follow it; what [Scheduler.Repeat] runs does.
func (s *Scheduler) StartAt(t time.Time, f func()) (Handle, error) {
	return s.Start(t.Sub(s.Now()), f)
}

// AfterFuncAt is [Scheduler.AfterFunc] for a moment instead of a delay, as StartAt is
// Start.
func (s *Scheduler) AfterFuncAt(t time.Time, f func()) *Timer {
	return s.AfterFunc(t.Sub(s.Now()), f)
}

// Deadline returns the moment for which the timer is set, on the Scheduler's clock and
// without the slack. It reports false if the timer is not pending. O(1).
func (h Handle) Deadline() (time.Time, bool) {
	if h.home == nil {
		return time.Time{}, false
	}
	sh := h.home.sh
	sh.mu.Lock()
	at, ok := sh.wheel.Deadline(h.id())
	sh.mu.Unlock()
	if !ok {
		return time.Time{}, false
	}
	return sh.s.at(at), true
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
	switch t.phase.Load() {
	case pending:
		return t.deadline, true
	case out:
		if f := t.sh.fallbackLocked(t.idLocked()); f != nil {
			return f.deadline, true
		}
		return t.sh.wheel.Deadline(t.idLocked())
	}
	return 0, false
}

// Deadline returns the moment for which a pending key is set, on the Scheduler's clock
// and without the slack, or false if the key is not pending. O(1).
func (k *Keyed[K, V]) Deadline(key K) (time.Time, bool) {
	sh, p := k.lock(key)
	defer sh.unlock()
	if e, ok := p.entries.Get(key); ok {
		if at, ok := sh.wheel.Deadline(e.id); ok {
			return k.s.at(at), true
		}
	}
	return time.Time{}, false
}
