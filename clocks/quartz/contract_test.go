package quartz_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// What f uses may be freed after Wait: so that waits for an f that runs when the context
// ends, and has its error.
func TestTickerFunc_WaitsForWhatRuns(t *testing.T) {
	for _, want := range []error{errors.New("boom"), nil} {
		clk := timertest.NewClock(time.Now())
		c := quartz.NewVirtual(clk)
		ctx, cancel := context.WithCancel(t.Context())
		runs, release, advanced := make(chan struct{}), make(chan struct{}), make(chan struct{})
		ended := false
		w := c.TickerFunc(ctx, time.Second, func() error {
			close(runs) // twice would panic
			<-release
			ended = true
			return want
		})
		go func() { clk.Advance(time.Second); close(advanced) }()
		<-runs
		cancel()
		got := make(chan error)
		go func() { got <- w.Wait() }()
		select {
		case err := <-got:
			t.Fatal("f still runs: ", err)
		case <-time.After(10 * time.Millisecond): // or it is too early to tell
		}
		close(release)
		err := <-got
		if !ended || !errors.Is(err, cmp.Or(want, context.Canceled)) {
			t.Errorf("ended is %v, and the error %v", ended, err)
		}
		<-advanced
		clk.Advance(time.Hour)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, c quartz.Clock, advance func(time.Duration))) {
	suite.OnBoth(t, quartz.On, func() (quartz.Clock, func(time.Duration)) {
		clk := timertest.NewClock(time.Now())
		return quartz.NewVirtual(clk), clk.Advance
	}, test)
}

// adapt returns a Clock's timers as package upstream has them, with tags.
func adapt(c quartz.Clock) suite.Clock {
	timer := func(t *quartz.Timer) suite.Timer {
		return suite.Timer{
			C:     t.C,
			Stop:  func() bool { return t.Stop("tag") },
			Reset: func(d time.Duration) bool { return t.Reset(d, "tag") },
		}
	}
	return suite.Clock{
		Now:       func() time.Time { return c.Now("tag") },
		NewTimer:  func(d time.Duration) suite.Timer { return timer(c.NewTimer(d, "tag")) },
		AfterFunc: func(d time.Duration, f func()) suite.Timer { return timer(c.AfterFunc(d, f, "tag")) },
		NewTicker: func(d time.Duration) suite.Ticker {
			t := c.NewTicker(d)
			return suite.Ticker{C: t.C, Stop: func() { t.Stop("tag") }, Reset: func(d time.Duration) { t.Reset(d, "tag") }}
		},
	}
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c quartz.Clock, advance func(time.Duration)) {
		start := c.Now()
		suite.CheckTimers(t, adapt(c), advance)
		if c.Since(start) < time.Hour || c.Until(start) > -time.Hour {
			t.Error("the time has not passed")
		}
	})
}

func TestVirtual_Due(t *testing.T) {
	suite.CheckDue(t, func(t *testing.T) (suite.Clock, func(time.Duration)) {
		m := quartz.NewMock(t)
		return adapt(m), func(d time.Duration) { m.Advance(d) }
	}, func(t *testing.T) (suite.Clock, func(time.Duration)) {
		clk := timertest.NewClock(time.Now())
		return adapt(quartz.NewVirtual(clk)), clk.Advance
	}, "Stop after Reset") // of a callback that has run, it claims to have stopped it
}

// A TickerFunc runs once for each tick, however far the clock is advanced at a time.
func TestVirtual_TickerFunc(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := timertest.NewClock(start)
	c := quartz.NewVirtual(clk)
	boom := errors.New("boom")
	var at []time.Duration
	w := c.TickerFunc(t.Context(), time.Second, func() error {
		if at = append(at, c.Since(start)); len(at) == 5 {
			return boom
		}
		return nil
	})
	clk.Advance(3*time.Second + 1)
	if !slices.Equal(at, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}) {
		t.Errorf("ran at %v", at)
	}
	clk.Advance(time.Hour)
	if err := w.Wait(); err != boom || len(at) != 5 || w.Wait() != boom {
		t.Errorf("ran at %v and returned %v", at, err)
	}
	for name, c := range map[string]quartz.Clock{"virtual": c, "system": quartz.NewReal(), "mock": quartz.NewMock(t)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a period of zero does not panic", name)
				}
			}()
			c.TickerFunc(t.Context(), 0, func() error { return nil })
		}()
	}
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

// A callback's panic is that of the Advance that runs it, and the clock can still be used.
func TestVirtual_Panic(t *testing.T) {
	clk := timertest.NewClock(time.Now())
	c := quartz.NewVirtual(clk)
	c.AfterFunc(time.Second, func() { panic("boom") })
	tm := c.NewTimer(time.Second)
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("Advance panicked with %v", v)
			}
		}()
		clk.Advance(time.Second)
	}()
	clk.Advance(0)
	if !suite.Received(tm.C) {
		t.Error("the other timer has not fired")
	}
}
