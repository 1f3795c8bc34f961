package quartz_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tickless/tickless/clocks/quartz"
	suite "github.com/tickless/tickless/internal/upstream"
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

func onBoth(t *testing.T, test func(t *testing.T, c quartz.Clock, advance func(time.Duration))) {
	suite.OnBoth(t, quartz.On, func() (quartz.Clock, func(time.Duration)) {
		clk := timertest.NewClock(time.Now())
		return quartz.NewVirtual(clk), clk.Advance
	}, test)
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c quartz.Clock, advance func(time.Duration)) {
		adapt := func(t *quartz.Timer) suite.Timer {
			return suite.Timer{
				C:     t.C,
				Stop:  func() bool { return t.Stop("tag") },
				Reset: func(d time.Duration) bool { return t.Reset(d, "tag") },
			}
		}
		start := c.Now()
		suite.CheckTimers(t, suite.Clock{
			Now:       func() time.Time { return c.Now("tag") },
			NewTimer:  func(d time.Duration) suite.Timer { return adapt(c.NewTimer(d, "tag")) },
			AfterFunc: func(d time.Duration, f func()) suite.Timer { return adapt(c.AfterFunc(d, f, "tag")) },
			NewTicker: func(d time.Duration) suite.Ticker {
				t := c.NewTicker(d)
				return suite.Ticker{C: t.C, Stop: func() { t.Stop("tag") }, Reset: func(d time.Duration) { t.Reset(d, "tag") }}
			},
		}, advance)
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
