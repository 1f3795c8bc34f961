package clockwork

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A FakeClock is a Clock on a virtual clock, with the methods of clockwork's
// FakeClock. Callbacks run on goroutines of their own.
type FakeClock struct {
	*Clock
	virtual *timertest.Clock

	advance sync.Mutex // held while time moves

	mu struct {
		sync.Mutex
		// started is closed when another timer is started. It is nil while nobody
		// waits for that.
		started chan struct{}
	}
}

// NewFakeClock returns a FakeClock that stands at the current time.
func NewFakeClock() *FakeClock { return NewFakeClockAt(time.Now()) }

// NewFakeClockAt returns a FakeClock that stands at t.
func NewFakeClockAt(t time.Time) *FakeClock {
	virtual := timertest.NewClock(t.Round(0))
	// A tick of a nanosecond has timers fire at their very moment.
	s := timer.New(timer.WithClock(virtual), timer.WithTick(1), timer.WithExecutor(executor.NewGoroutines()))
	return &FakeClock{Clock: NewOn(s, virtual), virtual: virtual}
}

// Advance moves the clock by d. What is due on the way fires at its moment, in
// order; callbacks may still run when Advance returns. It waits for another Advance that
// is under way, and panics if d is negative.
func (f *FakeClock) Advance(d time.Duration) {
	f.advance.Lock()
	defer f.advance.Unlock()
	f.virtual.Advance(d)
}

// BlockUntil waits until at least n timers and tickers are pending.
//
// Deprecated: use BlockUntilContext.
func (f *FakeClock) BlockUntil(n int) { _ = f.BlockUntilContext(context.Background(), n) }

// BlockUntilContext waits until at least n timers and tickers are pending, those of
// Sleep and After among them. It returns ctx's error if that ends first. Timers that
// were started on the Scheduler itself count, but do not wake it up.
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

// start wakes up who waits for timers. Its callers have started one.
func (f *FakeClock) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	defer f.start()
	return fakeTimer{f.Clock.NewTimer(d), f}
}

// AfterFunc is Clock.AfterFunc.
func (f *FakeClock) AfterFunc(d time.Duration, g func()) clockwork.Timer {
	defer f.start()
	return fakeTimer{f.Clock.AfterFunc(d, g), f}
}

// NewTicker is Clock.NewTicker.
func (f *FakeClock) NewTicker(d time.Duration) clockwork.Ticker {
	defer f.start()
	return fakeTicker{f.Clock.NewTicker(d), f}
}

type fakeTimer struct {
	clockwork.Timer
	clock *FakeClock
}

func (t fakeTimer) Reset(d time.Duration) bool {
	defer t.clock.start()
	return t.Timer.Reset(d)
}

type fakeTicker struct {
	clockwork.Ticker
	clock *FakeClock
}

func (t fakeTicker) Reset(d time.Duration) {
	defer t.clock.start()
	t.Ticker.Reset(d)
}
