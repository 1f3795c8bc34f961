package diskstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// now returns the store's time: the wall clock's when the store was opened, and what has
// passed since by the clock's monotonic reading. It is rounded down: a task is not due
// before its time.
func (s *Store) now() store.Time {
	now := s.config.clock.Now()
	t := store.Time(s.epoch.UnixMicro() + now.Sub(s.epoch).Microseconds())
	s.compare(now, t)
	return t
}

// compare says so if the wall clock has been set forward: what is due at a point in
// time is late by that then. One that was set back does not matter: nothing is early by
// the store's time.
func (s *Store) compare(now time.Time, t store.Time) {
	step := time.Duration(now.UnixMicro()-int64(t)) * time.Microsecond
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
