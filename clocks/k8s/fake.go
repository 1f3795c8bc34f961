package k8s

import (
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A FakeClock is a Clock on a virtual clock, with the methods of the FakeClock of
// k8s.io/utils/clock/testing. Make one with NewFakeClock.
type FakeClock struct {
	*Clock
	virtual *timertest.Clock

	mu struct {
		sync.Mutex
		// set is the time that the clock was last set to, and then the virtual clock's,
		// which cannot be set back.
		set, then time.Time
	}
}

// NewFakeClock returns a FakeClock that stands at t.
func NewFakeClock(t time.Time) *FakeClock {
	virtual := timertest.NewClock(t)
	// A tick of a nanosecond has timers fire at their very moment.
	s := timer.New(timer.WithClock(virtual), timer.WithTick(1))
	f := &FakeClock{Clock: NewOn(s, virtual), virtual: virtual}
	f.mu.set, f.mu.then = t, virtual.Now()
	return f
}

// Now returns the time to which the clock was moved.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.set.Add(f.virtual.Now().Sub(f.mu.then))
}

// Since returns the time that has passed since t.
func (f *FakeClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Step moves the clock by d. What is due on the way fires at its moment, in order;
// it has, callbacks included, when Step returns. It panics if d is negative.
func (f *FakeClock) Step(d time.Duration) { f.virtual.Advance(d) }

// SetTime moves the clock to t. If that is before Now, it only changes what Now
// tells: timers that are pending fire after the same delays as before, and the times
// that they send are those of the clock without it.
func (f *FakeClock) SetTime(t time.Time) {
	d := t.Sub(f.Now())
	if d >= 0 {
		f.Step(d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.set, f.mu.then = t, f.virtual.Now()
}

// Sleep is Step, as it is of the FakeClock of k8s.io/utils.
func (f *FakeClock) Sleep(d time.Duration) { f.Step(max(d, 0)) }

// Waiters returns the number of timers and tickers that are pending.
func (f *FakeClock) Waiters() int { return f.s.Len() }

// HasWaiters reports whether any are.
func (f *FakeClock) HasWaiters() bool { return f.Waiters() > 0 }
