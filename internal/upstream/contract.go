package upstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/timer"
)

// OnBoth runs a test of an adapter, of type C, on a Scheduler that follows the
// system's clock, and on a virtual clock with what advances it. Both run in a bubble.
// The test is given a function that moves the time and returns when all that is due
// has happened.
func OnBoth[C any](t *testing.T, system func(*timer.Scheduler) C, virtual func() (C, func(time.Duration)), test func(t *testing.T, c C, advance func(time.Duration))) {
	t.Run("system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			test(t, system(s), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
	t.Run("virtual", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, advance := virtual()
			test(t, c, func(d time.Duration) {
				advance(d)
				synctest.Wait()
			})
		})
	})
}

// A Clock is what all adapters have, under whatever names.
type Clock struct {
	Now       func() time.Time
	NewTimer  func(time.Duration) Timer
	AfterFunc func(time.Duration, func()) Timer
	NewTicker func(time.Duration) Ticker
}

// A Timer is a timer of a Clock's.
type Timer struct {
	C     <-chan time.Time
	Stop  func() bool
	Reset func(time.Duration) bool
}

// A Ticker is a ticker of a Clock's. Reset is nil if it has none.
type Ticker struct {
	C     <-chan time.Time
	Stop  func()
	Reset func(time.Duration)
}

// Received reports whether there was a value to be received.
func Received(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// CheckTimers requires of a Clock's timers and tickers what package time's do since
// Go 1.23.
func CheckTimers(t *testing.T, c Clock, advance func(time.Duration)) {
	t.Helper()
	start := c.Now()
	ran := make(chan struct{}, 10)
	tm, f := c.NewTimer(time.Second), c.AfterFunc(time.Second, func() { ran <- struct{}{} })
	tk := c.NewTicker(time.Second)
	advance(time.Second - time.Millisecond)
	if Received(tm.C) || Received(tk.C) || len(ran) != 0 {
		t.Error("a timer is early")
	}
	advance(2 * time.Millisecond)
	if !Received(tm.C) || !Received(tk.C) || len(ran) != 1 {
		t.Error("a timer has not fired")
	}
	if tm.Stop() || tm.Reset(time.Second) || f.Reset(time.Second) {
		t.Error("a timer is active after it has fired")
	}
	if !tm.Reset(2*time.Second) || !tm.Stop() || tm.Stop() || !f.Stop() {
		t.Error("Reset and Stop do not report what was active")
	}
	tm.Reset(time.Second)
	advance(2 * time.Second)
	if !Received(tk.C) {
		t.Error("no tick after two seconds more")
	}
	if !tm.Stop() || Received(tm.C) {
		t.Error("Stop has not withdrawn the value")
	}
	f.Reset(time.Second)
	if tk.Reset != nil {
		tk.Reset(time.Minute)
		advance(59 * time.Second)
		if Received(tk.C) {
			t.Error("a tick before the new period was over")
		}
	}
	advance(time.Minute)
	if !Received(tk.C) || len(ran) != 2 {
		t.Error("nothing has fired after Reset")
	}
	tk.Stop()
	advance(time.Hour)
	if Received(tm.C) || Received(tk.C) || len(ran) != 2 {
		t.Error("a timer has fired after Stop")
	}
	if d := c.Now().Sub(start); d < time.Hour || d > 2*time.Hour {
		t.Errorf("%v have passed", d)
	}
}
