package k8s_test

import (
	"testing"
	"testing/synctest"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/tickless/tickless/clocks/k8s"
	suite "github.com/tickless/tickless/internal/upstream"
	"github.com/tickless/tickless/timer"
)

// TestFakeClock_UpstreamTests runs the tests of k8s.io/utils of its FakeClock on this
// one.
func TestFakeClock_UpstreamTests(t *testing.T) {
	suite.Suite{
		Module: "k8s.io/utils",
		Files:  []string{"clock/testing/fake_clock_test.go"},
		Replace: []string{
			"package testing", "package k8s",
			"tc := NewFakePassiveClock", "tc := NewFakeClock",
		},
		Skip: map[string]string{
			"TestFakeStopDrain":    "it requires of Stop after expiry what it reported before Go 1.23",
			"TestTimerNegative":    "it requires that a timer that is due waits for the next Step",
			"TestFakeClockWaiters": "it requires that a ticker that was stopped stays a waiter",
		},
	}.Run(t)
}

// onBoth runs a test on a Scheduler that follows the system's clock, in a bubble, and
// on a FakeClock. Step moves the time, and returns when all that is due has happened.
func onBoth(t *testing.T, test func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration))) {
	t.Run("system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			test(t, k8s.New(s), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
	t.Run("fake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fc := k8s.NewFakeClock(time.Now())
			test(t, fc, func(d time.Duration) {
				fc.Step(d)
				synctest.Wait()
			})
		})
	})
}

func received(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration)) {
		start := c.Now()
		ran := make(chan struct{}, 10)
		tm, after, f := c.NewTimer(time.Second), c.After(time.Second), c.AfterFunc(time.Second, func() { ran <- struct{}{} })
		step(time.Second - time.Millisecond)
		if received(tm.C()) || received(after) || len(ran) != 0 {
			t.Error("a timer is early")
		}
		step(2 * time.Millisecond)
		if !received(tm.C()) || !received(after) || len(ran) != 1 {
			t.Error("a timer has not fired")
		}
		if tm.Stop() || tm.Reset(time.Second) || f.Reset(time.Second) {
			t.Error("a timer is active after it has fired")
		}
		if !tm.Stop() || !f.Stop() {
			t.Error("a timer is not active after Reset")
		}
		step(time.Hour)
		if received(tm.C()) || len(ran) != 1 {
			t.Error("a timer has fired after Stop")
		}
		if d := c.Since(start); d != time.Hour+time.Second+time.Millisecond {
			t.Errorf("%v have passed", d)
		}
	})
}

func TestClock_Tickers(t *testing.T) {
	onBoth(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration)) {
		tk, tick := c.NewTicker(time.Second), c.Tick(time.Second)
		for range 3 {
			step(time.Second + time.Millisecond)
			if !received(tk.C()) || !received(tick) {
				t.Error("no tick after a second")
			}
		}
		tk.Stop()
		step(time.Minute)
		if received(tk.C()) || !received(tick) {
			t.Error("a tick after Stop, or none without")
		}
		if c.Tick(0) != nil {
			t.Error("Tick(0) is not nil")
		}
	})
}

func TestClock_Sleep(t *testing.T) {
	onBoth(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, _ func(time.Duration)) {
		start := c.Now()
		c.Sleep(time.Second)
		if d := c.Since(start); d < time.Second {
			t.Errorf("slept for %v", d)
		}
	})
}

// A clock that is set back keeps the delays of what is pending.
func TestFakeClock_SetBack(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fc := k8s.NewFakeClock(start)
	tm := fc.NewTimer(time.Hour)
	fc.SetTime(start.Add(-24 * time.Hour))
	if !fc.Now().Equal(start.Add(-24 * time.Hour)) {
		t.Errorf("it is %v", fc.Now())
	}
	fc.Step(time.Hour - 1)
	if received(tm.C()) {
		t.Error("the timer is early")
	}
	fc.SetTime(start.Add(-23 * time.Hour))
	if !received(tm.C()) {
		t.Error("the timer has not fired")
	}
}

func TestNew_Nil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(nil) does not panic")
		}
	}()
	k8s.New(nil)
}
