package clocks_test

import (
	"runtime"
	"testing"
	"time"

	k8sclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tickless/tickless/clocks/k8s"
	"github.com/tickless/tickless/timer"
)

// TestK8sFakeClock_UpstreamTests runs the tests that k8s.io/utils has for its FakeClock on
// our FakeClock.
func TestK8sFakeClock_UpstreamTests(t *testing.T) {
	upstreamSuite{
		Dir:    "k8s",
		Module: "k8s.io/utils",
		Files:  []string{"clock/testing/fake_clock_test.go"},
		Replace: []string{
			"package testing", "package k8s",
		},
		ExtraFile: "package k8s\n\nvar NewFakePassiveClock = NewFakeClock\n",
		Skip: map[string]string{
			"TestFakeStopDrain":    "it requires of Stop after expiry what it reported before Go 1.23",
			"TestFakeClockWaiters": "it requires that a ticker that was stopped stays a waiter",
		},
	}.run(t)
}

func onK8s(t *testing.T, test func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration))) {
	onBothClocks(t, func(s *timer.Scheduler) k8sclock.WithTickerAndDelayedExecution { return k8s.New(s) },
		func() (k8sclock.WithTickerAndDelayedExecution, func(time.Duration)) {
			fc := k8s.NewFakeClock(time.Now())
			return fc, fc.Step
		}, test)
}

// adaptK8s converts a clock.WithTickerAndDelayedExecution to an anyClock.
func adaptK8s(c k8sclock.WithTickerAndDelayedExecution) anyClock {
	timer := func(t k8sclock.Timer) anyTimer { return anyTimer{C: t.C(), Stop: t.Stop, Reset: t.Reset} }
	return anyClock{
		Now:       c.Now,
		NewTimer:  func(d time.Duration) anyTimer { return timer(c.NewTimer(d)) },
		AfterFunc: func(d time.Duration, f func()) anyTimer { return timer(c.AfterFunc(d, f)) },
		NewTicker: func(d time.Duration) anyTicker {
			t := c.NewTicker(d)
			return anyTicker{C: t.C(), Stop: t.Stop}
		},
	}
}

func TestK8sClock_Timers(t *testing.T) {
	onK8s(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration)) {
		checkTimers(t, adaptK8s(c), step)
	})
}

func TestK8sFakeClock_Due(t *testing.T) {
	checkZeroDelays(t, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := clocktesting.NewFakeClock(time.Now())
		return adaptK8s(fc), fc.Step
	}, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := k8s.NewFakeClock(time.Now())
		return adaptK8s(fc), fc.Step
	})
}

// Step moves the time to a timer's deadline while the timer starts, or just after
// HasWaiters has reported it.
func TestK8sFakeClock_StartDuringAdvance(t *testing.T) {
	with := func(adapt func(k8sclock.WithTickerAndDelayedExecution) anyClock) func() racingClock {
		return func() racingClock {
			fc := k8s.NewFakeClock(time.Now())
			return racingClock{anyClock: adapt(fc), Advance: fc.Step, Pending: fc.Waiters, Await: func() {
				for !fc.HasWaiters() {
					runtime.Gosched()
				}
			}}
		}
	}
	checkStartDuringAdvance(t, with(adaptK8s))
	t.Run("Tick", func(t *testing.T) {
		checkStartDuringAdvance(t, with(func(c k8sclock.WithTickerAndDelayedExecution) anyClock {
			adapted := adaptK8s(c)
			adapted.NewTicker = func(d time.Duration) anyTicker { return anyTicker{C: c.Tick(d), Stop: func() {}} }
			return adapted
		}))
	})
}

// A timer with a delay of zero counts in Waiters until the next Step.
func TestK8sFakeClock_DueWaiters(t *testing.T) {
	for _, fc := range []interface {
		k8sclock.WithTickerAndDelayedExecution
		Step(time.Duration)
		Waiters() int
	}{clocktesting.NewFakeClock(time.Now()), k8s.NewFakeClock(time.Now())} {
		after := fc.After(-1)
		tm := fc.AfterFunc(0, func() {})
		if n := fc.Waiters(); n != 2 {
			t.Errorf("%T has %d waiters, not 2", fc, n)
		}
		if !tm.Stop() || tm.Stop() || fc.Waiters() != 1 {
			t.Errorf("%T has %d waiters, not 1", fc, fc.Waiters())
		}
		fc.Step(0)
		if !received(after) || fc.Waiters() != 0 {
			t.Errorf("%T has %d waiters, not 0", fc, fc.Waiters())
		}
	}
}

// If a callback panics, Step panics, and the clock stays usable.
func TestK8sFakeClock_Panic(t *testing.T) {
	fc := k8s.NewFakeClock(time.Now())
	fc.AfterFunc(time.Second, func() { panic("boom") })
	after := fc.After(time.Second)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("Step panicked with %v", v)
			}
		}()
		fc.Step(time.Second)
	}()
	fc.Step(0)
	if !received(after) {
		t.Error("the other timer has not fired")
	}
}

func TestK8sClock_AfterAndTick(t *testing.T) {
	onK8s(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, step func(time.Duration)) {
		start := c.Now()
		after, tick := c.After(time.Second), c.Tick(time.Second)
		step(time.Second - time.Millisecond)
		if received(after) || received(tick) {
			t.Error("a timer is early")
		}
		step(2 * time.Millisecond)
		if !received(after) || !received(tick) {
			t.Error("a timer has not fired")
		}
		if c.Tick(0) != nil {
			t.Error("Tick(0) is not nil")
		}
		if d := c.Since(start); d != time.Second+time.Millisecond {
			t.Errorf("%v have passed", d)
		}
	})
}

func TestK8sClock_Sleep(t *testing.T) {
	onK8s(t, func(t *testing.T, c k8sclock.WithTickerAndDelayedExecution, _ func(time.Duration)) {
		start := c.Now()
		c.Sleep(time.Second)
		if d := c.Since(start); d < time.Second {
			t.Errorf("slept for %v", d)
		}
	})
}

// Pending timers keep their delays when the clock is set back.
func TestK8sFakeClock_SetBack(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fc := k8s.NewFakeClock(start)
	tm := fc.NewTimer(time.Hour)
	fc.Step(-time.Hour)
	if !fc.Now().Equal(start.Add(-time.Hour)) {
		t.Errorf("after a negative Step it is %v", fc.Now())
	}
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

func TestK8sNew_Nil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(nil) does not panic")
		}
	}()
	k8s.New(nil)
}

// Waiters does not count a stopped ticker, unlike the FakeClock of k8s.io/utils.
func TestK8sFakeClock_StoppedTicker(t *testing.T) {
	fc := k8s.NewFakeClock(time.Now())
	ticker := fc.NewTicker(time.Second)
	if n := fc.Waiters(); n != 1 || !fc.HasWaiters() {
		t.Errorf("there are %d waiters, not 1", n)
	}
	ticker.Stop()
	if n := fc.Waiters(); n != 0 || fc.HasWaiters() {
		t.Errorf("there are %d waiters, not 0", n)
	}
}

// SetTime moves the clock by more than a Duration can hold. It panics if timers are
// pending.
func TestK8sFakeClock_SetTimeFar(t *testing.T) {
	fc := k8s.NewFakeClock(time.Time{})
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fc.SetTime(now)
	if !fc.Now().Equal(now) {
		t.Errorf("it is %v", fc.Now())
	}
	tm := fc.NewTimer(time.Hour)
	fc.Step(time.Hour - 1)
	if received(tm.C()) {
		t.Error("the timer is early")
	}
	fc.Step(1)
	if !received(tm.C()) {
		t.Error("the timer has not fired after an hour")
	}
	fc.NewTimer(time.Hour)
	defer func() {
		if recover() == nil || !fc.Now().Equal(now.Add(time.Hour)) {
			t.Error("SetTime moved the clock, or did not panic")
		}
	}()
	fc.SetTime(now.AddDate(300, 0, 0))
}
