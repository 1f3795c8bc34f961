package k8s

import (
	"math"
	"slices"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/tickless/tickless/clocks/internal/virtual"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// A FakeClock is a Clock whose time moves only by Step, SetTime and Sleep. It has the
// methods of the FakeClock of k8s.io/utils/clock/testing.
type FakeClock struct {
	*Clock
	virtualClock virtual.Clock

	mu struct {
		sync.Mutex
		// lastSetTime is the time to which the clock was last set. virtualTimeAtSet is
		// the virtual clock's time at that moment.
		lastSetTime, virtualTimeAtSet time.Time
		// timersForNextStep lists the timers with a delay of zero or less. They fire in the
		// next Step.
		timersForNextStep []*fakeTimer
	}
}

// NewFakeClock returns a FakeClock that shows t.
func NewFakeClock(t time.Time) *FakeClock {
	virtualClock, s := virtual.New(t, executor.NewInline(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) })))
	f := &FakeClock{Clock: NewOn(s, virtualClock), virtualClock: virtualClock}
	f.mu.lastSetTime, f.mu.virtualTimeAtSet = t, virtualClock.Now()
	return f
}

// Now returns the time that the clock shows.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.lastSetTime.Add(f.virtualClock.Now().Sub(f.mu.virtualTimeAtSet))
}

// Since returns the time that has passed since t.
func (f *FakeClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Step moves the clock forward by d, fires timers in the order of their deadlines, and
// runs their callbacks. If a callback panics, Step panics, and the other timers fire in
// the next Step. A negative d sets the clock back, as SetTime does.
func (f *FakeClock) Step(d time.Duration) {
	if d < 0 {
		f.SetTime(f.Now().Add(d))
		return
	}
	f.mu.Lock()
	for _, t := range f.mu.timersForNextStep {
		t.timer.Reset(0)
	}
	f.mu.timersForNextStep = nil
	f.mu.Unlock()
	f.virtualClock.Advance(d, &f.mu)
}

// SetTime sets the clock to t. If t is after Now, timers fire as in Step. If t is
// before Now, timers fire after the same delays as before. SetTime panics if timers are
// pending and t is more than 292 years after Now.
func (f *FakeClock) SetTime(t time.Time) {
	d := t.Sub(f.Now())
	if d == math.MaxInt64 {
		if f.Waiters() > 0 {
			panic("k8s: SetTime: the step must be at most 292 years while timers are pending")
		}
	} else if d >= 0 {
		f.Step(d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lastSetTime, f.mu.virtualTimeAtSet = t, f.virtualClock.Now()
}

// Sleep moves the time like Step, as in the FakeClock of k8s.io/utils.
func (f *FakeClock) Sleep(d time.Duration) { f.Step(max(d, 0)) }

// Waiters returns the number of pending timers and tickers.
func (f *FakeClock) Waiters() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.s.Len() + len(f.mu.timersForNextStep)
}

// HasWaiters reports whether any timers or tickers are pending.
func (f *FakeClock) HasWaiters() bool { return f.Waiters() > 0 }

// After is NewTimer(d).C().
func (f *FakeClock) After(d time.Duration) <-chan time.Time { return f.NewTimer(d).C() }

// NewTimer returns a timer that sends the time on its channel after d. If d is zero or
// less, it fires in the next Step, even in Step(0).
func (f *FakeClock) NewTimer(d time.Duration) k8sclock.Timer {
	return f.startTimer(f.s.NewTimer, d)
}

// AfterFunc returns a timer that runs cb after d, on the goroutine that moves the
// clock. If d is zero or less, cb runs in the next Step, even in Step(0).
func (f *FakeClock) AfterFunc(d time.Duration, cb func()) k8sclock.Timer {
	return f.startTimer(func(d time.Duration) *timer.Timer { return f.s.AfterFunc(d, cb) }, d)
}

// NewTicker returns a ticker with the period d. It panics if d is not positive.
func (f *FakeClock) NewTicker(d time.Duration) k8sclock.Ticker {
	f.mu.Lock() // otherwise a Step could pass the deadline while the ticker starts
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

func (f *FakeClock) startTimer(newTimer func(time.Duration) *timer.Timer, d time.Duration) *fakeTimer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > 0 {
		return &fakeTimer{newTimer(d), f}
	}
	t := &fakeTimer{newTimer(forever), f}
	t.resetLocked(d)
	return t
}

// forever is the delay of a timer that must not fire.
const forever time.Duration = math.MaxInt64

// A fakeTimer is a timer of a FakeClock. While it is pending, it is in the Scheduler or
// in the clock's list timersForNextStep.
type fakeTimer struct {
	timer *timer.Timer
	clock *FakeClock
}

func (t *fakeTimer) C() <-chan time.Time { return t.timer.C }

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
	wasPending := t.stopLocked()
	if d <= 0 {
		t.clock.mu.timersForNextStep = append(t.clock.mu.timersForNextStep, t)
	} else {
		t.timer.Reset(d)
	}
	return wasPending
}

// stopLocked stops the timer. It reports whether the timer was pending.
func (t *fakeTimer) stopLocked() bool {
	timers := &t.clock.mu.timersForNextStep
	if i := slices.Index(*timers, t); i >= 0 {
		*timers = slices.Delete(*timers, i, i+1)
		return true
	}
	return t.timer.Stop()
}
