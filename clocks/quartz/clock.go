package quartz

import (
	"context"
	"time"

	"github.com/coder/quartz"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A Clock has the functions of package time that depend on the time. Tags are for a
// Mock's traps.
type Clock interface {
	NewTicker(d time.Duration, tags ...string) *Ticker
	// TickerFunc calls f every d until ctx is done or f returns an error, which its
	// Waiter's Wait returns. It panics if d is not positive.
	TickerFunc(ctx context.Context, d time.Duration, f func() error, tags ...string) Waiter
	NewTimer(d time.Duration, tags ...string) *Timer
	AfterFunc(d time.Duration, f func(), tags ...string) *Timer
	Now(tags ...string) time.Time
	Since(t time.Time, tags ...string) time.Duration
	Until(t time.Time, tags ...string) time.Duration
}

// Waiter is what TickerFunc returns.
type Waiter = quartz.Waiter

// NewReal returns a Clock on the default Scheduler.
func NewReal() Clock { return On(timer.Default()) }

// On returns a Clock on a Scheduler that follows the system's clock. It panics if s is
// nil.
func On(s *timer.Scheduler) Clock {
	if s == nil {
		panic("quartz: On needs a Scheduler, got nil")
	}
	return scheduled{s, clock.System()}
}

// NewVirtual returns a Clock that moves when clk is advanced, on a Scheduler of its
// own. Callbacks, and the functions of TickerFunc, run on the goroutine that advances it,
// in its Advance, and panic there. A callback whose delay is zero or less runs at once, on
// a goroutine of its own.
func NewVirtual(clk *timertest.Clock) Clock {
	// A tick of a nanosecond has timers fire at their very moment.
	return virtual{scheduled{timer.New(timer.WithClock(clk), timer.WithTick(1), timer.WithPanicHandler(func(v any, _ []byte) { panic(v) })), clk}}
}

// scheduled is a Clock on a Scheduler that follows clk.
type scheduled struct {
	s   *timer.Scheduler
	clk clock.Clock
}

func (c scheduled) NewTicker(d time.Duration, _ ...string) *Ticker {
	t := c.s.NewTicker(d)
	return &Ticker{C: t.C, t: t}
}

func (c scheduled) NewTimer(d time.Duration, _ ...string) *Timer {
	t := c.s.NewTimer(d)
	return &Timer{C: t.C, t: t}
}

func (c scheduled) AfterFunc(d time.Duration, f func(), _ ...string) *Timer {
	return &Timer{t: c.s.AfterFunc(d, f)}
}

func (c scheduled) Now(_ ...string) time.Time                    { return c.clk.Now() }
func (c scheduled) Since(t time.Time, _ ...string) time.Duration { return c.clk.Now().Sub(t) }
func (c scheduled) Until(t time.Time, _ ...string) time.Duration { return t.Sub(c.clk.Now()) }

func (c scheduled) TickerFunc(ctx context.Context, d time.Duration, f func() error, _ ...string) Waiter {
	checkPeriod(d)
	w := &waiter{done: make(chan struct{})}
	ticks := c.s.NewTicker(d)
	go func() {
		defer close(w.done)
		defer ticks.Stop()
		for w.err == nil {
			select {
			case <-ctx.Done():
				w.err = ctx.Err()
			case <-ticks.C:
				w.err = f()
			}
		}
	}()
	return w
}

func checkPeriod(d time.Duration) {
	if d <= 0 {
		panic("quartz: TickerFunc: the period must be positive, got " + d.String())
	}
}

// waiter is a TickerFunc that runs.
type waiter struct {
	done chan struct{} // closed once err is set
	err  error
}

func (w *waiter) Wait(...string) error {
	<-w.done
	return w.err
}
