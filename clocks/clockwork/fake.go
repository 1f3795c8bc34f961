package clockwork

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A FakeClock is a Clock on a virtual clock, with the methods of clockwork's FakeClock.
// Each callback runs on a new goroutine, and its panic ends the program.
type FakeClock struct {
	*Clock
	virtual *timertest.Clock

	advance sync.Mutex // held while time moves

	mu struct {
		sync.Mutex
		// behind is how far Now is behind the virtual clock, which cannot be set back.
		behind time.Duration
		// started is closed when the next timer starts. It is nil if no call waits for
		// that.
		started chan struct{}
	}
}

// NewFakeClock returns a FakeClock that shows the current time and does not advance by
// itself.
func NewFakeClock() *FakeClock { return NewFakeClockAt(time.Now()) }

// NewFakeClockAt returns a FakeClock that shows t.
func NewFakeClockAt(t time.Time) *FakeClock {
	virtual := timertest.NewClock(t.Round(0))
	// With a tick of one nanosecond, timers fire exactly at their deadlines.
	e := executor.NewGoroutines(executor.WithPanicHandler(func(v any, stack []byte) { panic(fmt.Sprintf("%v\n\n%s", v, stack)) }))
	s := timer.New(timer.WithClock(virtual), timer.WithTick(1), timer.WithExecutor(e))
	return &FakeClock{Clock: NewOn(s, virtual), virtual: virtual}
}

// Now returns the time to which the clock has advanced.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.virtual.Now().Add(-f.mu.behind)
}

// Since returns the time that has passed since t.
func (f *FakeClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Until returns the time until t.
func (f *FakeClock) Until(t time.Time) time.Duration { return t.Sub(f.Now()) }

// Advance moves the clock forward by d. Timers fire at their deadlines, in order;
// callbacks may still run when Advance returns. Concurrent calls of Advance run one
// after the other. A negative d changes only the results of Now, Since and Until.
func (f *FakeClock) Advance(d time.Duration) {
	f.advance.Lock()
	defer f.advance.Unlock()
	if d < 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.behind -= d
		return
	}
	f.virtual.Advance(d)
	if f.overtaken() {
		f.virtual.Advance(0)
	}
}

// overtaken reports whether a timer is due right after an advance. A timer that was
// started during the advance may count from an earlier time, and set its alarm for a
// time that has passed. The lock waits until such a timer has set its alarm.
func (f *FakeClock) overtaken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, ok := f.virtual.Next()
	return ok && !next.After(f.virtual.Now())
}

// BlockUntil waits until at least n timers and tickers are pending.
//
// Deprecated: use BlockUntilContext.
func (f *FakeClock) BlockUntil(n int) { _ = f.BlockUntilContext(context.Background(), n) }

// BlockUntilContext waits until at least n timers and tickers are pending, including
// those of Sleep and After. It returns ctx's error if ctx ends first. Timers started
// directly on the Scheduler count, but their start does not wake the waiting call.
func (f *FakeClock) BlockUntilContext(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		if f.s.Len() >= n {
			f.mu.Unlock()
			return nil
		}
		if f.mu.started == nil {
			f.mu.started = make(chan struct{})
		}
		started := f.mu.started
		f.mu.Unlock()
		select {
		case <-started:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startedLocked wakes the calls of BlockUntilContext. Its callers start the timer under
// the lock, because a timer counts as pending before its alarm is set: a test could
// count it and advance the time past the alarm.
func (f *FakeClock) startedLocked() {
	if f.mu.started != nil {
		close(f.mu.started)
		f.mu.started = nil
	}
}

// Sleep is Clock.Sleep.
func (f *FakeClock) Sleep(d time.Duration) { <-f.After(d) }

// After is Clock.After.
func (f *FakeClock) After(d time.Duration) <-chan time.Time { return f.NewTimer(d).Chan() }

// NewTimer is Clock.NewTimer.
func (f *FakeClock) NewTimer(d time.Duration) clockwork.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.startedLocked()
	return fakeTimer{f.Clock.NewTimer(d), f, nil}
}

// AfterFunc is Clock.AfterFunc. If d is not positive, g runs at once.
func (f *FakeClock) AfterFunc(d time.Duration, g func()) clockwork.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > 0 {
		defer f.startedLocked()
		return fakeTimer{f.Clock.AfterFunc(d, g), f, g}
	}
	t := fakeTimer{f.Clock.AfterFunc(never, g), f, g}
	t.resetLocked(d)
	return t
}

// never is a delay that outlasts every FakeClock.
const never time.Duration = math.MaxInt64

// NewTicker is Clock.NewTicker.
func (f *FakeClock) NewTicker(d time.Duration) clockwork.Ticker {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.startedLocked()
	return fakeTicker{f.Clock.NewTicker(d), f}
}

type fakeTimer struct {
	clockwork.Timer
	clock *FakeClock
	f     func() // AfterFunc's, or nil
}

func (t fakeTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.resetLocked(d)
}

func (t fakeTimer) resetLocked(d time.Duration) bool {
	if t.f != nil && d <= 0 {
		// On a Scheduler the callback would only run at the next advance.
		active := t.Stop()
		go t.f()
		return active
	}
	defer t.clock.startedLocked()
	return t.Timer.Reset(d)
}

type fakeTicker struct {
	clockwork.Ticker
	clock *FakeClock
}

func (t fakeTicker) Reset(d time.Duration) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	defer t.clock.startedLocked()
	t.Ticker.Reset(d)
}
