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
	w.mu.forget = context.AfterFunc(ctx, func() { w.end(ctx.Err()) })
	return w
}

// virtualTickerFunc is a TickerFunc of a virtual clock.
type virtualTickerFunc struct {
	waiter
	d time.Duration
	f func() error

	mu struct {
		sync.Mutex
		next   *timer.Timer
		forget func() bool // the context
		ended  bool
	}
}

// tick runs in the Advance that reaches its moment.
func (w *virtualTickerFunc) tick() {
	w.mu.Lock()
	ended := w.mu.ended
	w.mu.Unlock()
	if ended {
		return
	}
	if err := w.f(); err != nil {
		w.end(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.ended {
		w.mu.next.Reset(w.d)
	}
}

// end ends the ticks, once.
func (w *virtualTickerFunc) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.ended {
		return
	}
	w.mu.ended = true
	w.mu.next.Stop()
	w.mu.forget()
	w.err = err
	close(w.done)
}
