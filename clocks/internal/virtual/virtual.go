// Package virtual is what the fake clocks of packages clockwork and k8s share.
package virtual

import (
	"sync"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A Clock is a virtual clock. Its times may be compared with ==.
type Clock struct{ *timertest.Clock }

// New returns a Clock that shows t, and a Scheduler on it. Timers fire exactly at their
// deadlines: a tick is a nanosecond.
func New(t time.Time, e executor.Executor) (Clock, *timer.Scheduler) {
	clk := Clock{timertest.NewClock(t)}
	return clk, timer.New(timer.WithClock(clk), timer.WithTick(1), timer.WithExecutor(e))
}

// Advance moves the clock forward by d. starting is locked while a timer starts: a timer that
// starts meanwhile, and still reads the old time, may be due at once.
func (c Clock) Advance(d time.Duration, starting sync.Locker) {
	c.Clock.Advance(d)
	starting.Lock()
	next, ok := c.Clock.Next()
	isDue := ok && !next.After(c.Clock.Now())
	starting.Unlock()
	if isDue {
		c.Clock.Advance(0)
	}
}
