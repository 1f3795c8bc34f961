package k8s

import (
	"math"
	"slices"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"

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
		// due are the timers that were started with a delay of zero or less, which wait
		// for the next Step.
		due []*fakeTimer
	}
}

// NewFakeClock returns a FakeClock that stands at t.
func NewFakeClock(t time.Time) *FakeClock {
	virtual := timertest.NewClock(t)
	// A tick of a nanosecond has timers fire at their very moment.
	clk := reading{virtual, t, virtual.Now()}
	s := timer.New(timer.WithClock(clk), timer.WithTick(1), timer.WithPanicHandler(func(v any, _ []byte) { panic(v) }))
	f := &FakeClock{Clock: NewOn(s, clk), virtual: virtual}
	f.mu.set, f.mu.then = t, virtual.Now()
	return f
}

// A reading is a virtual clock whose times have the monotonic reading, if any, of the time
// that it began at: so what a channel gets is == to what Now returned then.
type reading struct {
	*timertest.Clock
	start, from time.Time // the same moment, with and without the reading
}

func (r reading) Now() time.Time { return r.start.Add(r.Clock.Now().Sub(r.from)) }

// Now returns the time to which the clock was moved.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.set.Add(f.virtual.Now().Sub(f.mu.then))
}

// Since returns the time that has passed since t.
func (f *FakeClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Step moves the clock by d. What is due on the way fires at its moment, in order;
// it has, callbacks included, when Step returns. If a callback panics, so does Step, and
// what else was due waits for the next one. A negative d is SetTime to an earlier time.
func (f *FakeClock) Step(d time.Duration) {
	if d < 0 {
		f.SetTime(f.Now().Add(d))
		return
	}
	f.mu.Lock()
	for _, t := range f.mu.due {
		t.t.Reset(0)
	}
	f.mu.due = nil
	f.mu.Unlock()
	f.virtual.Advance(d)
	if f.overtaken() {
		f.virtual.Advance(0)
	}
}

// overtaken reports whether a timer is due although the time was just moved: one that was
// being started meanwhile may count from a moment before, and have its alarm set when that
// has passed. The lock waits for such starts.
func (f *FakeClock) overtaken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, ok := f.virtual.Next()
	return ok && !next.After(f.virtual.Now())
}

// SetTime moves the clock to t. If that is before Now, it only changes what Now
// tells: timers that are pending fire after the same delays as before, and the times
// that they send are those of the clock without it. It panics if timers are pending and t
// is more than 292 years after Now, which is what a Duration can hold.
func (f *FakeClock) SetTime(t time.Time) {
	d := t.Sub(f.Now())
	if d == math.MaxInt64 {
		if f.Waiters() > 0 {
			panic("k8s: SetTime: a step of more than 292 years, with timers pending")
		}
	} else if d >= 0 {
		f.Step(d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.set, f.mu.then = t, f.virtual.Now()
}

// Sleep is Step, as it is of the FakeClock of k8s.io/utils.
func (f *FakeClock) Sleep(d time.Duration) { f.Step(max(d, 0)) }

// Waiters returns the number of timers and tickers that are pending.
func (f *FakeClock) Waiters() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.s.Len() + len(f.mu.due)
}

// HasWaiters reports whether any are.
func (f *FakeClock) HasWaiters() bool { return f.Waiters() > 0 }

// After is NewTimer(d).C().
func (f *FakeClock) After(d time.Duration) <-chan time.Time { return f.NewTimer(d).C() }

// NewTimer returns a timer that sends the time on its channel after d: if that is zero
// or less, in the next Step, whatever its duration is.
func (f *FakeClock) NewTimer(d time.Duration) k8sclock.Timer {
	return f.start(f.s.NewTimer, d)
}

// AfterFunc returns a timer that runs cb after d, on the goroutine that moves the time:
// if d is zero or less, in the next Step, whatever its duration is.
func (f *FakeClock) AfterFunc(d time.Duration, cb func()) k8sclock.Timer {
	return f.start(func(d time.Duration) *timer.Timer { return f.s.AfterFunc(d, cb) }, d)
}

// NewTicker returns a ticker with the period d. It panics if d is not positive.
func (f *FakeClock) NewTicker(d time.Duration) k8sclock.Ticker {
	f.mu.Lock() // whoever counted it before its alarm is set could move the time past it
	defer f.mu.Unlock()
	return f.Clock.NewTicker(d)
}

// Tick is NewTicker(d).C(), or nil if d is not positive.
func (f *FakeClock) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return f.NewTicker(d).C()
}

func (f *FakeClock) start(start func(time.Duration) *timer.Timer, d time.Duration) *fakeTimer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > 0 {
		return &fakeTimer{start(d), f}
	}
	t := &fakeTimer{start(never), f}
	t.resetLocked(d)
	return t
}

// never is a delay that no FakeClock can get to the end of.
const never time.Duration = math.MaxInt64

// A fakeTimer is a FakeClock's timer. It is the Scheduler's while it is pending, unless it
// is among the clock's due timers.
type fakeTimer struct {
	t     *timer.Timer
	clock *FakeClock
}

func (t *fakeTimer) C() <-chan time.Time { return t.t.C }

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.stopLocked()
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.resetLocked(d)
}

func (t *fakeTimer) resetLocked(d time.Duration) bool {
	active := t.stopLocked()
	if d <= 0 {
		t.clock.mu.due = append(t.clock.mu.due, t)
	} else {
		t.t.Reset(d)
	}
	return active
}

// stopLocked takes the timer from where it is. It reports whether it was pending.
func (t *fakeTimer) stopLocked() bool {
	due := &t.clock.mu.due
	if i := slices.Index(*due, t); i >= 0 {
		*due = slices.Delete(*due, i, i+1)
		return true
	}
	return t.t.Stop()
}
