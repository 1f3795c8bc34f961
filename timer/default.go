package timer

import (
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// defaultScheduler is made when it is first used, and never closed.
var defaultScheduler = sync.OnceValue(func() *Scheduler {
	s := newScheduler([]Option{WithName("default")})
	s.isDefault = true // before register: from then on Schedulers returns it
	s.register()
	return s
})

// mustNotBeDefault panics on the default Scheduler: the method would end the timers of other
// packages.
func (s *Scheduler) mustNotBeDefault(method string) {
	s.mustBeMade()
	if s.isDefault {
		panic("timer: " + method + " of the default Scheduler, which the whole program shares: close one that you have made with New")
	}
}

// Default returns the Scheduler that the package-level functions use. It is made on first
// use, with the defaults of all options. The whole program shares it, so its Close and
// Shutdown panic.
//
// Inside a testing/synctest bubble the package-level functions use package time. A Timer
// or Ticker of the default Scheduler that comes from outside, for example from a
// sync.Pool, follows the bubble's clock if it is reset inside, and the system's clock if
// it is reset outside again. Default panics in a bubble, and so does starting a timer
// there on the result of an earlier Default: make a Scheduler with [New] in the bubble.
func Default() *Scheduler {
	if bubble.Inside() {
		// A default Scheduler that is made here would follow the bubble's clock, for the
		// whole program and for ever. Default panics even if the Scheduler was made
		// before, so that a test does not depend on others.
		panic("timer: Default is called inside a testing/synctest bubble, whose clock it would not follow:" +
			" call timer.New inside the bubble")
	}
	return defaultScheduler()
}

// outsideBubble returns the default Scheduler and the time on its clock. Inside a bubble,
// where time has no monotonic reading, it returns nil.
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
		return &Timer{p: timePayload(time.AfterFunc(d, f))}
	}
	return s.newTimer(now, d, nil, funcPayload(f), tagFunc)
}

// NewTimer is [Scheduler.NewTimer] on the default Scheduler.
func NewTimer(d time.Duration) *Timer {
	s, now := outsideBubble()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{C: t.C, p: timePayload(t)}
	}
	c := make(chan time.Time, 1)
	return s.newTimer(now, d, c, chanPayload(c), tagChan)
}

// After is [time.After]: its timers are garbage when no goroutine can receive from them,
// while a Scheduler would keep each until it fires. In a loop, resetting a timer of
// [NewTimer] costs less than either.
func After(d time.Duration) <-chan time.Time { return time.After(d) }

// NewTicker is [Scheduler.NewTicker] on the default Scheduler.
func NewTicker(d time.Duration) *Ticker {
	mustBePositive("NewTicker", d)
	s, now := outsideBubble()
	if s == nil {
		t := time.NewTicker(d)
		return &Ticker{C: t.C, inner: t}
	}
	return s.newTicker(now, d)
}

// Tick is [time.Tick]: the ticker cannot be stopped, and in package time it is garbage
// when its channel is.
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
