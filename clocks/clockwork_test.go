package clocks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	upstream "github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clocks/clockwork"
	"github.com/tickless/tickless/timer"
)

// TestClockworkFakeClock_UpstreamTests runs clockwork's tests of its FakeClock on our FakeClock.
func TestClockworkFakeClock_UpstreamTests(t *testing.T) {
	const before123 = "it expects Stop after expiry to report what it did before Go 1.23"
	upstreamSuite{
		Dir:    "clockwork",
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

func onClockwork(t *testing.T, test func(t *testing.T, c upstream.Clock, advance func(time.Duration))) {
	onBothClocks(t, func(s *timer.Scheduler) upstream.Clock { return clockwork.New(s) },
		func() (upstream.Clock, func(time.Duration)) {
			fc := clockwork.NewFakeClock()
			return fc, fc.Advance
		}, test)
}

// adaptClockwork converts a clockwork.Clock to an anyClock.
func adaptClockwork(c upstream.Clock) anyClock {
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

func TestClockworkClock_Timers(t *testing.T) {
	onClockwork(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		checkTimers(t, adaptClockwork(c), advance)
	})
}

func TestClockworkFakeClock_Due(t *testing.T) {
	checkZeroDelays(t, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := upstream.NewFakeClock()
		return adaptClockwork(fc), fc.Advance
	}, func(*testing.T) (anyClock, func(time.Duration)) {
		fc := clockwork.NewFakeClock()
		return adaptClockwork(fc), fc.Advance
	})
}

// Advance moves the time to a timer's deadline while the timer starts, or just after
// BlockUntil has returned.
func TestClockworkFakeClock_StartDuringAdvance(t *testing.T) {
	checkStartDuringAdvance(t, func() racingClock {
		fc := clockwork.NewFakeClock()
		return racingClock{
			anyClock: adaptClockwork(fc), Advance: fc.Advance,
			Pending: fc.Scheduler().Len, Await: func() { _ = fc.BlockUntilContext(context.Background(), 1) },
		}
	})
}

// A callback with a delay of zero may use the clock. A nil callback does not leave the
// clock locked.
func TestClockworkFakeClock_DueUsesClock(t *testing.T) {
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
func TestClockworkFakeClock_DueIsNotPending(t *testing.T) {
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
func TestClockworkFakeClock_SetBack(t *testing.T) {
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

func TestClockworkClock_SleepAndAfter(t *testing.T) {
	onClockwork(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
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

func TestClockworkFakeClock_BlockUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fc := clockwork.NewFakeClock()
		tm := fc.NewTimer(time.Minute)
		tm.Stop()
		blocked := make(chan struct{})
		go func() {
			fc.BlockUntil(3) //lint:ignore SA1019 who moves over still calls it
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

func TestClockworkNew_Nil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New(nil) does not panic")
		}
	}()
	clockwork.New(nil)
}

func TestClockworkFakeClock_Panic(t *testing.T) {
	checkPanicEnds(t, "boom", func() {
		fc := clockwork.NewFakeClock()
		fc.AfterFunc(time.Second, func() { panic("boom") })
		fc.Advance(time.Second)
	})
}

// The times of a FakeClock equal those that a test computes from the time it was made
// from, with ==, as those of clockwork's own do.
func TestClockworkFakeClock_TimesEqualThoseItWasMadeFrom(t *testing.T) {
	type fakeClock interface {
		upstream.Clock
		Advance(time.Duration)
	}
	zone := time.FixedZone("zone", 3600)
	for name, start := range map[string]time.Time{
		"now":          time.Now(),
		"now in zone":  time.Now().In(zone),
		"no monotonic": time.Now().Round(0),
		"date":         time.Date(2030, 1, 1, 0, 0, 0, 0, zone),
	} {
		for impl, c := range map[string]fakeClock{
			"clockwork": upstream.NewFakeClockAt(start),
			"tickless":  clockwork.NewFakeClockAt(start),
		} {
			equal := func(what string, got, want time.Time) {
				t.Helper()
				if got != want {
					t.Errorf("%s, %s, %s: %v, want %v", impl, name, what, got, want)
				}
			}
			equal("Now", c.Now(), start)
			after := c.After(time.Second)
			ticker := c.NewTicker(time.Second)
			c.Advance(time.Second)
			equal("Now", c.Now(), start.Add(time.Second))
			equal("After", <-after, start.Add(time.Second))
			equal("ticker", <-ticker.Chan(), start.Add(time.Second))
			c.Advance(-time.Second)
			equal("set back", c.Now(), start)
			equal("Now", start.Add(time.Minute), c.Now().Add(time.Minute))
			ticker.Stop()
		}
	}
}
