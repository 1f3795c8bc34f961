// Command core executes the operations of the core's packages whose complexity is
// promised, for the test beside it.
package main

import (
	"slices"
	"time"

	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func main() { cost.Main(ops) }

var ops = slices.Concat(bucketOps, wheelOps, timerOps, keyedOps, schedulerOps, queueOps, otherOps)

func nothing() {}

// must is for what cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newClock() *timertest.Clock {
	return timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

// newScheduler returns one with a shard, and a clock that stands still.
func newScheduler(opts ...timer.Option) *timer.Scheduler {
	return timer.New(append([]timer.Option{timer.WithClock(newClock()), timer.WithShards(1)}, opts...)...)
}

// delay is the i-th of n delays between an hour and two.
func delay(i, n int) time.Duration { return time.Hour + time.Duration(i)*(time.Hour/time.Duration(n)) }

// start starts n timers of an hour or two.
func start(s *timer.Scheduler, n int) []timer.Handle {
	hs := make([]timer.Handle, n)
	for i := range hs {
		hs[i] = must(s.Start(delay(i, n), nothing))
	}
	return hs
}

// some is the i-th of 256 that are spread over all.
func some[T any](all []T, i int) T { return all[i*len(all)/256] }
