package diskstore

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
)

// now returns the store's time: the wall clock's when the store was opened, and what has
// passed since by the clock's monotonic reading. It is rounded down: a task is not due
// before its time.
func (s *Store) now() store.Time {
	now := s.config.clock.Now()
	t := store.Time(s.opened.UnixMicro() + now.Sub(s.epoch).Microseconds())
	s.compare(s.wall(now), t)
	return t
}

// lastTime is the latest at which a Store does anything: on the last day of all that it
// keeps times for a lease might have no end.
const lastTime = store.Farthest - store.Time(24*time.Hour/time.Microsecond)

// noTime is the error of a clock that shows a time which a Store does not keep.
func noTime(t time.Time) error {
	return fmt.Errorf("diskstore: %w: the clock shows %v, and a store works from 1970 until %v: %w",
		store.ErrUnfit, t.UTC(), lastTime.Std().UTC(), store.ErrNotDone)
}

// wall returns the time of day.
func (s *Store) wall(now time.Time) time.Time {
	if w, ok := s.config.clock.(clock.Wall); ok {
		return w.Wall()
	}
	return now
}

// startClock has the store's time begin.
func (s *Store) startClock() {
	s.epoch = s.config.clock.Now()
	s.opened = s.wall(s.epoch)
}

// compare says so if the wall clock has been set forward: what is due at a point in
// time is late by that then. One that was set back does not matter: nothing is early by
// the store's time.
func (s *Store) compare(wall time.Time, t store.Time) {
	step := time.Duration(wall.UnixMicro()-int64(t)) * time.Microsecond
	said := s.ahead.Load()
	switch {
	case step > MaxClockStep && said == 0:
		if s.ahead.CompareAndSwap(0, int64(step)) {
			s.config.log.Warn("diskstore: the wall clock was set forward, or the machine slept; "+
				"tasks are that late until the store is opened again", "by", step.Round(time.Second))
		}
	case step <= MaxClockStep && said != 0:
		s.ahead.Store(0)
	}
}

// lookBack says so if the wall clock has been set back since the store was open before.
func (s *Store) lookBack() {
	if by := s.behind(); by > 0 {
		s.config.log.Warn("diskstore: the wall clock was set back since the store was last used; "+
			"what was to come after some time waits that much longer", "by", by.Round(time.Second))
	}
}

// behind returns how far the wall clock was set back, if it matters, and has not caught up.
func (s *Store) behind() time.Duration {
	if by := s.last.Sub(s.now()); by > MaxClockStep {
		return by
	}
	return 0
}
