package timer

import (
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// defaultScheduler returns the default Scheduler. The first call makes it. It is never
// closed.
var defaultScheduler = sync.OnceValue(func() *Scheduler {
	s := newScheduler([]Option{WithName("default")})
	s.isDefault = true // before register, which lets Schedulers return s
	s.register()
	return s
})

// mustNotBeDefault panics on the default Scheduler. Closing it would end the timers of
// other packages.
func (s *Scheduler) mustNotBeDefault(method string) {
	s.mustBeFromNew()
	if s.isDefault {
		panic("timer: " + method + ": the default Scheduler must not be closed, because the whole program shares it: close a Scheduler made by New")
	}
}

// Default returns the Scheduler that the package-level functions use. It is made on first
// use, with default options. The whole program shares it, so its Close and Shutdown
// panic.
//
// Inside a testing/synctest bubble the package-level functions use package time. A Timer
// or Ticker of the default Scheduler may be made outside, for example in a sync.Pool. If
// it is reset inside a bubble, it follows the bubble's clock. If it is reset outside
// again, it follows the system's clock.
//
// In a bubble, Default panics. If Default was called outside, starting a timer on the
// result panics inside a bubble too. Make a Scheduler with [New] in the bubble instead.
func Default() *Scheduler {
	if bubble.Inside() {
		// If the default Scheduler were made here, it would follow the bubble's clock in
		// the rest of the program. Default panics even if it exists already, so that the
		// result of a test does not depend on earlier tests.
		panic("timer: Default: must not be called inside a testing/synctest bubble:" +
			" call timer.New inside the bubble")
	}
	return defaultScheduler()
}

// outsideBubble returns the default Scheduler and the time on its clock. Inside a bubble,
// where time.Now has no monotonic reading, it returns nil.
func outsideBubble() (*Scheduler, int64) {
	t := time.Now()
	if !bubble.Monotonic(t) {
		return nil, 0
	}
	s := defaultScheduler()
	return s, max(0, int64(t.Sub(s.epoch)))
}

// AfterFunc is [Scheduler.AfterFunc] on the default Scheduler.
func AfterFunc(d time.Duration, f func()) *Timer {
	s, now := outsideBubble()
	if s == nil {
		return &Timer{p: stdTimerPayload(time.AfterFunc(d, f))}
	}
	return s.newTimer(now, d, nil, funcPayload(f), tagFunc)
}

// NewTimer is [Scheduler.NewTimer] on the default Scheduler.
func NewTimer(d time.Duration) *Timer {
	s, now := outsideBubble()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{C: t.C, p: stdTimerPayload(t)}
	}
	c := make(chan time.Time, 1)
	return s.newTimer(now, d, c, chanPayload(c), tagChan)
}

// After is [time.After]. Its timers are garbage when no goroutine can receive from them;
// a Scheduler would keep each timer until it fires. In a loop, make one timer with
// [NewTimer] and reset it.
func After(d time.Duration) <-chan time.Time { return time.After(d) }

// NewTicker is [Scheduler.NewTicker] on the default Scheduler.
func NewTicker(d time.Duration) *Ticker {
	mustBePositive("NewTicker", d)
	s, now := outsideBubble()
	if s == nil {
		t := time.NewTicker(d)
		return &Ticker{C: t.C, stdTicker: t}
	}
	return s.newTicker(now, d)
}

// Tick is [time.Tick]. The ticker cannot be stopped, but it is garbage when its channel
// is.
func Tick(d time.Duration) <-chan time.Time { return time.Tick(d) }

// Sleep is [Scheduler.Sleep] on the default Scheduler.
func Sleep(d time.Duration) {
	s, _ := outsideBubble()
	if s == nil {
		time.Sleep(d)
		return
	}
	s.Sleep(d)
}
