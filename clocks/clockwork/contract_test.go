package clockwork_test

import (
	"testing"
	"testing/synctest"
	"time"

	upstream "github.com/jonboulle/clockwork"

	"github.com/tickless/tickless/clocks/clockwork"
	suite "github.com/tickless/tickless/internal/upstream"
	"github.com/tickless/tickless/timer"
)

// TestFakeClock_UpstreamTests runs clockwork's tests of its FakeClock on this one.
func TestFakeClock_UpstreamTests(t *testing.T) {
	const before123 = "it requires of Stop after expiry what it reported before Go 1.23"
	suite.Suite{
		Module: "github.com/jonboulle/clockwork",
		Files:  []string{"clockwork_test.go", "timer_test.go", "ticker_test.go"},
		Replace: []string{
			"&FakeClock{}", "NewFakeClockAt(time.Time{})",
		},
		Skip: map[string]string{
			"TestFakeClockTimers":      before123,
			"TestAfterDeliveryInOrder": "it starts timers while another goroutine advances the clock, which in clockwork makes them wait until it has advanced",
		},
	}.Run(t)
}

// onBoth runs a test on a Scheduler that follows the system's clock, in a bubble, and
// on a FakeClock. Advance moves the time, and returns when all that is due has
// happened.
func onBoth(t *testing.T, test func(t *testing.T, c upstream.Clock, advance func(time.Duration))) {
	t.Run("system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			test(t, clockwork.New(s), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
	t.Run("fake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fc := clockwork.NewFakeClock()
			test(t, fc, func(d time.Duration) {
				fc.Advance(d)
				synctest.Wait()
			})
		})
	})
}

func received(c <-chan time.Time) (time.Time, bool) {
	select {
	case at := <-c:
		return at, true
	default:
		return time.Time{}, false
	}
}

func TestClock_Timer(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		start := c.Now()
		tm := c.NewTimer(time.Second)
		advance(time.Second - time.Millisecond)
		if _, ok := received(tm.Chan()); ok {
			t.Error("the timer is early")
		}
		advance(2 * time.Millisecond)
		if at, ok := received(tm.Chan()); !ok || at.Sub(start) < time.Second || at.Sub(start) > time.Second+time.Millisecond {
			t.Errorf("after a second: %v, %v", at.Sub(start), ok)
		}
		if tm.Stop() || tm.Reset(time.Second) {
			t.Error("the timer is active after it has fired")
		}
		if !tm.Reset(2*time.Second) || !tm.Stop() || tm.Stop() {
			t.Error("Reset and Stop do not report what was active")
		}
		tm.Reset(time.Second)
		advance(2 * time.Second)
		if !tm.Stop() {
			t.Error("Stop did not withdraw the value")
		}
		if _, ok := received(tm.Chan()); ok {
			t.Error("received a value from before Stop")
		}
	})
}

func TestClock_AfterFunc(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		runs := make(chan struct{}, 10)
		tm := c.AfterFunc(time.Second, func() { runs <- struct{}{} })
		advance(2 * time.Second)
		tm.Reset(time.Second)
		advance(2 * time.Second)
		if len(runs) != 2 || tm.Stop() {
			t.Errorf("ran %d times, want 2", len(runs))
		}
	})
}

func TestClock_Ticker(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		tk := c.NewTicker(time.Second)
		for range 3 {
			advance(time.Second + time.Millisecond)
			if _, ok := received(tk.Chan()); !ok {
				t.Error("no tick after a second")
			}
		}
		tk.Reset(time.Minute)
		advance(59 * time.Second)
		if _, ok := received(tk.Chan()); ok {
			t.Error("a tick before the new period was over")
		}
		tk.Stop()
		advance(time.Hour)
		if _, ok := received(tk.Chan()); ok {
			t.Error("a tick after Stop")
		}
	})
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
		if _, ok := received(after); !ok {
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
