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

// Default returns the Scheduler that the package-level functions use. It has default
// options. The whole program shares it, so its Close and Shutdown panic.
//
// Inside a testing/synctest bubble Default panics, and the package-level functions use
// package time. A Timer or Ticker that was made outside can be stopped inside, but its
// Reset panics there.
func Default() *Scheduler {
	if bubble.Inside() {
		// A default Scheduler that was made here would follow the bubble's clock in the
		// whole program.
		panic("timer: Default: must not be called inside a testing/synctest bubble:" +
			" call timer.New inside the bubble")
	}
	return defaultScheduler()
}

// defaultIfOutsideBubble returns the default Scheduler and the time on its clock. Inside
// a bubble, where time.Now has no monotonic reading, it returns nil.
func defaultIfOutsideBubble() (*Scheduler, int64) {
	t := time.Now()
	if !bubble.HasMonotonic(t) {
		return nil, 0
	}
	s := defaultScheduler()
	return s, max(0, int64(t.Sub(s.epoch)))
}

// AfterFunc is [Scheduler.AfterFunc] on the default Scheduler.
func AfterFunc(d time.Duration, f func()) *Timer {
	s, now := defaultIfOutsideBubble()
	if s == nil {
		return &Timer{payload: stdTimerPayload(time.AfterFunc(d, f))}
	}
	return s.newTimer(now, d, nil, funcPayload(f), tagFunc)
}

// NewTimer is [Scheduler.NewTimer] on the default Scheduler.
func NewTimer(d time.Duration) *Timer {
	s, now := defaultIfOutsideBubble()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{C: t.C, payload: stdTimerPayload(t)}
	}
	c := make(chan time.Time, 1)
	return s.newTimer(now, d, c, chanPayload(c), tagChan)
}

// After is [time.After]. Its timer is garbage when its channel is. In a loop, make one
// timer with [NewTimer] and reset it.
func After(d time.Duration) <-chan time.Time { return time.After(d) }

// NewTicker is [Scheduler.NewTicker] on the default Scheduler.
func NewTicker(d time.Duration) *Ticker {
	mustBePositive("NewTicker", d)
	s, now := defaultIfOutsideBubble()
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
	s, _ := defaultIfOutsideBubble()
	if s == nil {
		time.Sleep(d)
		return
	}
	s.Sleep(d)
}
