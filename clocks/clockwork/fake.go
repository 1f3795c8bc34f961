package clockwork

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clocks/internal/virtual"
	"github.com/tickless/tickless/executor"
)

// A FakeClock is a Clock whose time moves only by Advance. It has the methods of
// clockwork's own FakeClock. Each callback runs on a new goroutine.
type FakeClock struct {
	*Clock
	virtualClock virtual.Clock

	advanceMu sync.Mutex // held during Advance

	mu struct {
		sync.Mutex
		// setBackBy is the sum of all negative Advances, as a positive duration. Now
		// subtracts it: the virtual clock cannot be set back.
		setBackBy time.Duration
		// timerStarted is closed when a timer starts, to wake BlockUntilContext. It is nil
		// if no call waits.
		timerStarted chan struct{}
	}
}

// NewFakeClock returns a FakeClock that shows the current time and does not advance by
// itself.
func NewFakeClock() *FakeClock { return NewFakeClockAt(time.Now()) }

// NewFakeClockAt returns a FakeClock that shows t.
func NewFakeClockAt(t time.Time) *FakeClock {
	virtualClock, s := virtual.New(t, executor.NewGoroutines(executor.WithPanicHandler(func(v any, stack []byte) { panic(fmt.Sprintf("%v\n\n%s", v, stack)) })))
	return &FakeClock{Clock: NewOn(s, virtualClock), virtualClock: virtualClock}
}

// Now returns the time that the clock shows.
func (f *FakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Clock.Now().Add(-f.mu.setBackBy)
}

// Since returns the time that has passed since t.
func (f *FakeClock) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Until returns the time until t.
func (f *FakeClock) Until(t time.Time) time.Duration { return t.Sub(f.Now()) }

// Advance moves the clock forward by d, and fires timers in the order of their
// deadlines. Their callbacks may still run when Advance returns. A negative d changes
// only the results of Now, Since and Until.
func (f *FakeClock) Advance(d time.Duration) {
	f.advanceMu.Lock()
	defer f.advanceMu.Unlock()
	if d < 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.setBackBy -= d
		return
	}
	f.virtualClock.Advance(d, &f.mu)
}

// BlockUntil waits until at least n timers and tickers are pending.
//
// Deprecated: use BlockUntilContext.
func (f *FakeClock) BlockUntil(n int) { _ = f.BlockUntilContext(context.Background(), n) }

// BlockUntilContext waits until at least n timers and tickers are pending, or returns
// the error of ctx if ctx ends first. Sleep and After count as timers. A timer that is
// started directly on the Scheduler may not be noticed.
func (f *FakeClock) BlockUntilContext(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		if f.s.Len() >= n {
			f.mu.Unlock()
			return nil
		}
		if f.mu.timerStarted == nil {
			f.mu.timerStarted = make(chan struct{})
		}
		timerStarted := f.mu.timerStarted
		f.mu.Unlock()
		select {
		case <-timerStarted:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wakeWaitersLocked wakes the calls of BlockUntilContext after a timer has started. The
// timer must start under f.mu too: otherwise Advance could miss it.
func (f *FakeClock) wakeWaitersLocked() {
	if f.mu.timerStarted != nil {
		close(f.mu.timerStarted)
		f.mu.timerStarted = nil
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
	defer f.wakeWaitersLocked()
	return fakeTimer{f.Clock.NewTimer(d), f, nil}
}

// AfterFunc returns a timer that runs g after d. If d is not positive, g runs at once.
func (f *FakeClock) AfterFunc(d time.Duration, g func()) clockwork.Timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d > 0 {
		defer f.wakeWaitersLocked()
		return fakeTimer{f.Clock.AfterFunc(d, g), f, g}
	}
	t := fakeTimer{f.Clock.AfterFunc(forever, g), f, g}
	t.resetLocked(d)
	return t
}

// forever is the delay of a timer that must not fire.
const forever time.Duration = math.MaxInt64

// NewTicker is Clock.NewTicker.
func (f *FakeClock) NewTicker(d time.Duration) clockwork.Ticker {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wakeWaitersLocked()
	return fakeTicker{f.Clock.NewTicker(d), f}
}

type fakeTimer struct {
	clockwork.Timer
	clock *FakeClock
	f     func() // the argument of AfterFunc, or nil
}

func (t fakeTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.resetLocked(d)
}

func (t fakeTimer) resetLocked(d time.Duration) bool {
	if t.f != nil && d <= 0 {
		// The callback is due now, but the Scheduler would run it only at the next Advance.
		wasPending := t.Stop()
		go t.f()
		return wasPending
	}
	defer t.clock.wakeWaitersLocked()
	return t.Timer.Reset(d)
}

type fakeTicker struct {
	clockwork.Ticker
	clock *FakeClock
}

func (t fakeTicker) Reset(d time.Duration) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	defer t.clock.wakeWaitersLocked()
	t.Ticker.Reset(d)
}
