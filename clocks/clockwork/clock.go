package clockwork

import (
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timer"
)

// A Clock implements clockwork.Clock with a Scheduler. Make one with New or NewOn.
type Clock struct {
	s   *timer.Scheduler
	clk clock.Clock
}

var _ clockwork.Clock = (*Clock)(nil)

// New returns a Clock on a Scheduler that follows the system's clock. It panics if s is
// nil.
func New(s *timer.Scheduler) *Clock { return NewOn(s, clock.System()) }

// NewOn returns a Clock on a Scheduler that was made with timer.WithClock(clk). It
// panics if s or clk is nil.
func NewOn(s *timer.Scheduler, clk clock.Clock) *Clock {
	if s == nil || clk == nil {
		panic("clockwork: a Clock needs a Scheduler and its clock, got nil")
	}
	return &Clock{s, clk}
}

// Scheduler returns the Scheduler that runs the clock's timers.
func (c *Clock) Scheduler() *timer.Scheduler { return c.s }

// Now returns the current time.
func (c *Clock) Now() time.Time { return c.clk.Now() }

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.clk.Now().Sub(t) }

// Until returns the time until t.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.clk.Now()) }

// Sleep pauses the calling goroutine for at least d.
func (c *Clock) Sleep(d time.Duration) { c.s.Sleep(d) }

// After is NewTimer(d).Chan(). The Scheduler keeps the timer until it fires.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.s.After(d) }

// NewTimer returns a timer that sends the time on its channel after d.
func (c *Clock) NewTimer(d time.Duration) clockwork.Timer { return timerAdapter{c.s.NewTimer(d)} }

// AfterFunc returns a timer that runs f after d, on the Scheduler's executor.
func (c *Clock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return timerAdapter{c.s.AfterFunc(d, f)}
}

// NewTicker returns a ticker with the period d. It panics if d is not positive.
func (c *Clock) NewTicker(d time.Duration) clockwork.Ticker { return tickerAdapter{c.s.NewTicker(d)} }

type timerAdapter struct{ *timer.Timer }

func (t timerAdapter) Chan() <-chan time.Time { return t.C }

type tickerAdapter struct{ *timer.Ticker }

func (t tickerAdapter) Chan() <-chan time.Time { return t.C }
