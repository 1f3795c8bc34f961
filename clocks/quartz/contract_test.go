package quartz_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	suite "github.com/tickless/tickless/internal/upstream"

	"github.com/tickless/tickless/clocks/quartz"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// TestMock_UpstreamTests runs quartz's tests on this package.
func TestMock_UpstreamTests(t *testing.T) {
	suite.Suite{
		Module:  "github.com/coder/quartz",
		Files:   []string{"mock_test.go", "example_test.go"},
		Replace: []string{`"github.com/coder/quartz"`, `"github.com/tickless/tickless/clocks/quartz"`},
	}.Run(t)
}

// onBoth runs a test on a Scheduler that follows the system's clock, in a bubble, and
// on a virtual one. Advance moves the time, and returns when all that is due has
// happened.
func onBoth(t *testing.T, test func(t *testing.T, c quartz.Clock, advance func(time.Duration))) {
	t.Run("system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			defer s.Close()
			test(t, quartz.On(s), func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			})
		})
	})
	t.Run("virtual", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clk := timertest.NewClock(time.Now())
			test(t, quartz.NewVirtual(clk), func(d time.Duration) {
				clk.Advance(d)
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

func TestClock_Contract(t *testing.T) {
	onBoth(t, func(t *testing.T, c quartz.Clock, advance func(time.Duration)) {
		start := c.Now()
		ran := make(chan struct{}, 10)
		tm, f := c.NewTimer(time.Second), c.AfterFunc(time.Second, func() { ran <- struct{}{} })
		tk := c.NewTicker(time.Second)
		advance(time.Second - time.Millisecond)
		if received(tm.C) || received(tk.C) || len(ran) != 0 {
			t.Error("a timer is early")
		}
		advance(2 * time.Millisecond)
		if !received(tm.C) || !received(tk.C) || len(ran) != 1 {
			t.Error("a timer has not fired")
		}
		if tm.Stop() || tm.Reset(time.Second) || f.Reset(time.Second) {
			t.Error("a timer is active after it has fired")
		}
		if !tm.Stop() || !f.Stop() {
			t.Error("a timer is not active after Reset")
		}
		tk.Reset(time.Minute)
		advance(time.Second)
		if received(tk.C) {
			t.Error("a tick before the new period was over")
		}
		tk.Stop()
		advance(time.Hour)
		if received(tm.C) || received(tk.C) || len(ran) != 1 {
			t.Error("a timer has fired after Stop")
		}
		if c.Since(start) < time.Hour || c.Until(start) > -time.Hour {
			t.Error("the time has not passed")
		}
	})
}

func TestClock_TickerFunc(t *testing.T) {
	onBoth(t, func(t *testing.T, c quartz.Clock, advance func(time.Duration)) {
		boom := errors.New("boom")
		ran := make(chan struct{}, 10)
		w := c.TickerFunc(t.Context(), time.Second, func() error {
			ran <- struct{}{}
			if len(ran) == 3 {
				return boom
			}
			return nil
		})
		for range 5 {
			advance(time.Second + time.Millisecond)
		}
		if err := w.Wait(); err != boom || len(ran) != 3 {
			t.Errorf("ran %d times and returned %v", len(ran), err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		w = c.TickerFunc(ctx, time.Second, func() error { return nil })
		cancel()
		if err := w.Wait(); err != context.Canceled {
			t.Errorf("returned %v", err)
		}
	})
}
