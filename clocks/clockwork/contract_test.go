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

func onBoth(t *testing.T, test func(t *testing.T, c upstream.Clock, advance func(time.Duration))) {
	suite.OnBoth(t, func(s *timer.Scheduler) upstream.Clock { return clockwork.New(s) },
		func() (upstream.Clock, func(time.Duration)) {
			fc := clockwork.NewFakeClock()
			return fc, fc.Advance
		}, test)
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c upstream.Clock, advance func(time.Duration)) {
		adapt := func(t upstream.Timer) suite.Timer { return suite.Timer{C: t.Chan(), Stop: t.Stop, Reset: t.Reset} }
		suite.CheckTimers(t, suite.Clock{
			Now:       c.Now,
			NewTimer:  func(d time.Duration) suite.Timer { return adapt(c.NewTimer(d)) },
			AfterFunc: func(d time.Duration, f func()) suite.Timer { return adapt(c.AfterFunc(d, f)) },
			NewTicker: func(d time.Duration) suite.Ticker {
				t := c.NewTicker(d)
				return suite.Ticker{C: t.Chan(), Stop: t.Stop, Reset: t.Reset}
			},
		}, advance)
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
		if !suite.Received(after) {
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
