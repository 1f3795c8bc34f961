package timer

import (
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// defaultScheduler is made when it is first needed, and never closed.
var defaultScheduler = sync.OnceValue(func() *Scheduler {
	s := newScheduler([]Option{WithName("default")})
	s.shared = true // first: from then on Schedulers has it
	s.register()
	return s
})

// mustBeOwned panics if everybody shares the Scheduler: whoever calls the method would
// end the timers of packages that know nothing of it.
func (s *Scheduler) mustBeOwned(method string) {
	s.mustBeMade()
	if s.shared {
		panic("timer: " + method + " of the default Scheduler, which the whole program shares: close one that you have made with New")
	}
}

// Default returns the Scheduler that the package-level functions use. It is made
// on first use, with the defaults of all options. The whole program shares it, so
// nobody can close it: its Close and Shutdown panic.
//
// Inside a testing/synctest bubble the package-level functions use package time instead. A
// Timer or Ticker of the default Scheduler that comes from outside, for example from a
// sync.Pool, follows the bubble's clock when it is reset inside, and the system's when it is
// reset outside again. Default panics in a bubble, and so does a start there on the Scheduler
// that it returned outside: make one with [New] in the bubble.
func Default() *Scheduler {
	if bubble.Inside() {
		// Made here it would follow the bubble's clock, for the whole program and for
		// ever. That it may have been made outside makes no difference, so that what a
		// test does depends on no other.
		panic("timer: Default is called inside a testing/synctest bubble, whose clock it would not follow:" +
			" call timer.New inside the bubble")
	}
	return defaultScheduler()
}

// outsideBubble returns the default Scheduler and the time on its clock; or nil inside
// a bubble, where time has no monotonic reading.
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

// After is [time.After] itself: its timers are garbage once nobody receives from them, while
// a Scheduler would keep each until it fires. In a loop, a [NewTimer] that is reset costs
// less than either.
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

// Tick is [time.Tick] itself: a ticker of package time that nobody can stop is
// garbage once its channel is.
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
