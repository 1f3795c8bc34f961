package quartz

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
)

// virtual is a Clock on a Scheduler that follows package timertest's clock.
type virtual struct{ scheduled }

func (c virtual) AfterFunc(d time.Duration, f func(), _ ...string) *Timer {
	if d > 0 {
		return &Timer{t: c.s.AfterFunc(d, f), f: f}
	}
	t := &Timer{t: c.s.AfterFunc(never, f), f: f}
	t.Reset(d)
	return t
}

// never is a delay that no virtual clock can get to the end of.
const never time.Duration = math.MaxInt64

// TickerFunc calls f at each tick: unlike a ticker, it drops none when the clock is
// advanced over several at a time.
func (c virtual) TickerFunc(ctx context.Context, d time.Duration, f func() error, _ ...string) Waiter {
	checkPeriod(d)
	w := &virtualTickerFunc{d: d, f: f}
	w.done = make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.next = c.s.AfterFunc(d, w.tick)
	w.mu.forget = context.AfterFunc(ctx, func() { w.cancel(ctx.Err()) })
	return w
}

// virtualTickerFunc is a TickerFunc of a virtual clock.
type virtualTickerFunc struct {
	waiter
	d time.Duration
	f func() error

	mu struct {
		sync.Mutex
		next    *timer.Timer
		forget  func() bool // the context
		running bool        // f
		over    error       // the context's, which has ended while f runs
		ended   bool
	}
}

// tick runs in the Advance that reaches its moment.
func (w *virtualTickerFunc) tick() {
	if !w.begin() {
		return
	}
	var err error
	defer func() { w.ran(err) }() // also if f panics
	err = w.f()
}

// begin reports whether f is to be called.
func (w *virtualTickerFunc) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.running = !w.mu.ended
	return w.mu.running
}

// ran is called after f.
func (w *virtualTickerFunc) ran(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.running = false
	switch {
	case err != nil:
		w.endLocked(err)
	case w.mu.over != nil:
		w.endLocked(w.mu.over)
	default:
		w.mu.next.Reset(w.d)
	}
}

// cancel is called when the context has ended. Wait waits for f, and returns its error if
// it has one.
func (w *virtualTickerFunc) cancel(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.running:
		w.mu.over = err
	case !w.mu.ended:
		w.endLocked(err)
	}
}

// endLocked ends the ticks.
func (w *virtualTickerFunc) endLocked(err error) {
	w.mu.ended = true
	w.mu.next.Stop()
	w.mu.forget()
	w.err = err
	close(w.done)
}
