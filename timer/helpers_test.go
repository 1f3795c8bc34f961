package timer_test

import (
	"iter"
	"slices"

	"github.com/tickless/tickless/timer"
)

// must returns v; an error ends the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// leftover closes s and returns what it leaves over.
func leftover(s *timer.Scheduler) iter.Seq[timer.Leftover] {
	s.Close()
	return s.Leftover()
}

// closeAll closes s and returns what was pending.
func closeAll(s *timer.Scheduler) []timer.Leftover { return slices.Collect(leftover(s)) }
