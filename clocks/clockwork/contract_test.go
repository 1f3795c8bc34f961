package clockwork_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	upstream "github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clocks/clockwork"
	"github.com/tickless/tickless/timer"
)

// TestFakeClock_UpstreamTests runs clockwork's tests of its FakeClock on our FakeClock.
func TestFakeClock_UpstreamTests(t *testing.T) {
	const before123 = "it expects Stop after expiry to report what it did before Go 1.23"
	upstreamSuite{
		Module: "github.com/jonboulle/clockwork",
		Files:  []string{"clockwork_test.go", "timer_test.go", "ticker_test.go"},
		Replace: []string{
			"&FakeClock{}", "NewFakeClockAt(time.Time{})",
		},
		Skip: map[string]string{
			"TestFakeClockTimers":      before123,
			"TestAfterDeliveryInOrder": "it starts timers while another goroutine advances the clock, which in clockwork makes them wait until it has advanced",
		},
	}.run(t)
}

func onBoth(t *testing.T, test func(t *testing.T, c upstream.Clock, advance func(time.Duration))) {
	onBothClocks(t, func(s *timer.Scheduler) upstream.Clock { return clockwork.New(s) },
		func() (upstream.Clock, func(time.Duration)) {
			fc := clockwork.NewFakeClock()
			return fc, fc.Advance
		}, test)
}

// adapt converts a clockwork.Clock to an anyClock.
func adapt(c upstream.Clock) anyClock {
	timer := func(t upstream.Timer) anyTimer { return anyTimer{C: t.Chan(), Stop: t.Stop, Reset: t.Reset} }
	return anyClock{
		Now:       c.Now,
		NewTimer:  func(d time.Duration) anyTimer { return timer(c.NewTimer(d)) },
		AfterFunc: func(d time.Duration, f func()) anyTimer { return timer(c.AfterFunc(d, f)) },
		NewTicker: func(d time.Duration) anyTicker {
			t := c.NewTicker(d)
			return anyTicker{C: t.Chan(), Stop: t.Stop, Reset: t.Reset}
		},
	}
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		checkTimers(t, adapt(c), advance)
	})
}

func TestFakeClock_Due(t *testing.T) {
	checkZeroDelays(t, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := upstream.NewFakeClock()
		return adapt(fc), fc.Advance
	}, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := clockwork.NewFakeClock()
		return adapt(fc), fc.Advance
	})
}

// Advance moves the time to a timer's deadline while the timer starts, or just after
// BlockUntil has returned.
func TestFakeClock_StartDuringAdvance(t *testing.T) {
	checkStartDuringAdvance(t, func() racingClock {
		fc := clockwork.NewFakeClock()
		return racingClock{
			anyClock: adapt(fc), Advance: fc.Advance,
			Pending: fc.Scheduler().Len, Await: func() { fc.BlockUntil(1) },
		}
	})
}

// A callback with a delay of zero may use the clock. A nil callback does not leave the
// clock locked.
func TestFakeClock_DueUsesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fc := clockwork.NewFakeClock()
		ran := 0
		var tm upstream.Timer
		tm = fc.AfterFunc(time.Hour, func() {
			fc.Advance(time.Second)
			fc.NewTicker(time.Second).Stop()
			if ran++; ran < 3 {
				tm.Reset(0)
			}
		})
		tm.Reset(0)
		synctest.Wait()
		if ran != 3 {
			t.Errorf("the callback ran %d times, not 3", ran)
		}
		fc.AfterFunc(0, nil)
		fc.NewTimer(time.Second).Stop()
	})
}

// A timer with a delay of zero does not count as pending.
func TestFakeClock_DueIsNotPending(t *testing.T) {
	fc := clockwork.NewFakeClock()
	fc.AfterFunc(0, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fc.BlockUntilContext(ctx, 1); err != context.Canceled {
		t.Errorf("a timer that has fired counts as pending: %v", err)
	}
}

// A negative Advance sets the clock back, as with clockwork's own FakeClock. Pending
// timers keep their delays.
func TestFakeClock_SetBack(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	fc, libraryClock := clockwork.NewFakeClockAt(start), upstream.NewFakeClockAt(start)
	tm := fc.NewTimer(time.Minute)
	for _, d := range []time.Duration{-time.Hour, time.Second, -1, 0} {
		fc.Advance(d)
		libraryClock.Advance(d)
		if !fc.Now().Equal(libraryClock.Now()) || fc.Since(start) != libraryClock.Since(start) || fc.Until(start) != libraryClock.Until(start) {
			t.Errorf("after Advance(%v) it is %v, and clockwork's %v", d, fc.Now(), libraryClock.Now())
		}
	}
	fc.Advance(58 * time.Second)
	if received(tm.Chan()) {
		t.Error("the timer is early")
	}
	fc.Advance(time.Second)
	if !received(tm.Chan()) {
		t.Error("the timer has not fired")
	}
}

func TestClock_SleepAndAfter(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		start := c.Now()
		woke := make(chan time.Duration, 1)
		go func() {
			c.Sleep(time.Second)
			woke <- c.Since(start)
		}()
		after := c.After(2 * time.Second)
		synctest.Wait()
		advance(time.Second + time.Millisecond)
		if d := <-woke; d < time.Second {
			t.Errorf("slept for %v", d)
		}
		advance(time.Second)
		if !received(after) {
			t.Error("After has not delivered")
		}
		if d := c.Until(start); d >= 0 {
			t.Errorf("%v until the start", d)
		}
	})
}

func TestFakeClock_BlockUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fc := clockwork.NewFakeClock()
		tm := fc.NewTimer(time.Minute)
		tm.Stop()
		blocked := make(chan struct{})
		go func() {
			fc.BlockUntil(3)
			close(blocked)
		}()
		synctest.Wait()
		fc.AfterFunc(time.Minute, func() {})
		go fc.Sleep(time.Minute)
		synctest.Wait()
		select {
		case <-blocked:
			t.Error("two are pending, not three")
		default:
		}
		tm.Reset(time.Minute)
		<-blocked
		fc.Advance(time.Minute)
	})
}

func TestNew_Nil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(nil) does not panic")
		}
	}()
	clockwork.New(nil)
}

func TestFakeClock_Panic(t *testing.T) {
	checkPanicEnds(t, "boom", func() {
		fc := clockwork.NewFakeClock()
		fc.AfterFunc(time.Second, func() { panic("boom") })
		fc.Advance(time.Second)
	})
}
