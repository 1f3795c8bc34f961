package clock_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	upstream "github.com/benbjohnson/clock"

	clock "github.com/tickless/tickless/clocks/benbjohnson"
	suite "github.com/tickless/tickless/internal/upstream"
)

// TestMock_UpstreamTests runs the tests of github.com/benbjohnson/clock on this
// package.
func TestMock_UpstreamTests(t *testing.T) {
	const byRealClock = "it judges by the real clock how late a timer is; TestClock_Timers does so in a bubble"
	suite.Suite{
		Module: "github.com/benbjohnson/clock",
		Files:  []string{"clock_test.go", "context_test.go"},
		// They sleep for a millisecond of the real clock for other goroutines to have
		// their turn. With one proc a thread that the machine does not run holds all up.
		Args: []string{"-cpu=1"},
		// This long they wait for what is to come.
		Replace: []string{
			"<-time.After(1 * time.Second)", "<-time.After(time.Minute)",
			"<-time.After(time.Second)", "<-time.After(time.Minute)",
		},
		Skip: map[string]string{
			"TestClock_After":           byRealClock,
			"TestClock_AfterFunc":       byRealClock,
			"TestClock_Now":             byRealClock,
			"TestClock_Sleep":           byRealClock,
			"TestClock_Tick":            byRealClock,
			"TestClock_Ticker":          byRealClock,
			"TestClock_Ticker_Stp":      byRealClock,
			"TestClock_Ticker_Rst":      byRealClock,
			"TestClock_Ticker_Stop_Rst": byRealClock,
			"TestClock_Timer":           byRealClock,
			"TestClock_Timer_Stop":      byRealClock,
			"TestClock_Timer_Reset":     byRealClock,
		},
	}.Run(t)
}

// TestAPI_IsUpstreams compares the types with those that they take the place of.
func TestAPI_IsUpstreams(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[clock.Clock](), reflect.TypeFor[upstream.Clock]()},
		{reflect.TypeFor[*clock.Timer](), reflect.TypeFor[*upstream.Timer]()},
		{reflect.TypeFor[*clock.Ticker](), reflect.TypeFor[*upstream.Ticker]()},
		{reflect.TypeFor[*clock.Mock](), reflect.TypeFor[*upstream.Mock]()},
	} {
		ours, theirs := pair[0], pair[1]
		for i := range theirs.NumMethod() {
			want := theirs.Method(i)
			got, ok := ours.MethodByName(want.Name)
			if !ok {
				t.Errorf("%v has no %s", ours, want.Name)
				continue
			}
			if signature(got.Type) != signature(want.Type) {
				t.Errorf("%v.%s is %v, want %v", ours, want.Name, got.Type, want.Type)
			}
		}
	}
}

// signature is a method's type; both packages are called clock.
func signature(t reflect.Type) string { return strings.ReplaceAll(t.String(), "func(", "(") }

func onBoth(t *testing.T, test func(t *testing.T, c clock.Clock, add func(time.Duration))) {
	suite.OnBoth(t, clock.On, func() (clock.Clock, func(time.Duration)) {
		m := clock.NewMock()
		return m, m.Add
	}, test)
}

func TestClock_Timers(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock, add func(time.Duration)) {
		adapt := func(t *clock.Timer) suite.Timer { return suite.Timer{C: t.C, Stop: t.Stop, Reset: t.Reset} }
		suite.CheckTimers(t, suite.Clock{
			Now:       c.Now,
			NewTimer:  func(d time.Duration) suite.Timer { return adapt(c.Timer(d)) },
			AfterFunc: func(d time.Duration, f func()) suite.Timer { return adapt(c.AfterFunc(d, f)) },
			NewTicker: func(d time.Duration) suite.Ticker {
				t := c.Ticker(d)
				return suite.Ticker{C: t.C, Stop: t.Stop, Reset: t.Reset}
			},
		}, add)
	})
}

func TestClock_Others(t *testing.T) {
	onBoth(t, func(t *testing.T, c clock.Clock, add func(time.Duration)) {
		start := c.Now()
		after, tick := c.After(time.Second), c.Tick(time.Second)
		ctx, cancel := c.WithTimeout(context.Background(), time.Second)
		defer cancel()
		slept := make(chan time.Duration, 1)
		go func() {
			c.Sleep(time.Second)
			slept <- c.Since(start)
		}()
		synctest.Wait()

		add(time.Second - time.Millisecond)
		if suite.Received(after) || suite.Received(tick) || ctx.Err() != nil {
			t.Error("a timer is early")
		}
		add(2 * time.Millisecond)
		if !suite.Received(after) || !suite.Received(tick) {
			t.Error("a timer has not fired")
		}
		if ctx.Err() != context.DeadlineExceeded {
			t.Errorf("the context's error is %v", ctx.Err())
		}
		if d := <-slept; d < time.Second {
			t.Errorf("slept for %v", d)
		}
		deadline, cancel := c.WithDeadline(context.Background(), start)
		defer cancel()
		if deadline.Err() != context.DeadlineExceeded || c.Until(start) >= 0 {
			t.Error("a deadline that has passed is pending")
		}
	})
}

func TestMock_WaitForAllTimers(t *testing.T) {
	m := clock.NewMock()
	t1, t2 := m.Timer(time.Second), m.Timer(time.Hour)
	if at := m.WaitForAllTimers(); at.Before(time.Unix(3600, 0)) || m.Until(at) != 0 {
		t.Errorf("stopped at %v", at)
	}
	if !suite.Received(t1.C) || !suite.Received(t2.C) {
		t.Error("a timer has not fired")
	}
}

func TestMock_SetBack(t *testing.T) {
	m := clock.NewMock()
	tm := m.Timer(time.Hour)
	m.Set(time.Unix(-1000, 0))
	if !m.Now().Equal(time.Unix(-1000, 0)) {
		t.Errorf("it is %v", m.Now())
	}
	m.Add(time.Hour)
	if !suite.Received(tm.C) {
		t.Error("the timer has not fired")
	}
}

func TestMock_Panic(t *testing.T) {
	suite.CheckPanicEnds(t, "boom", func() {
		m := clock.NewMock()
		m.AfterFunc(time.Second, func() { panic("boom") })
		m.Add(time.Second)
	})
}
