package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	upstream "github.com/benbjohnson/clock"

	clock "github.com/tickless/tickless/clocks/benbjohnson"
	suite "github.com/tickless/tickless/internal/upstream"
)

func TestMock_Due(t *testing.T) {
	suite.CheckDue(t, func(*testing.T) (suite.Clock, func(time.Duration)) {
		m := upstream.NewMock()
		adapt := func(t *upstream.Timer) suite.Timer { return suite.Timer{C: t.C, Stop: t.Stop, Reset: t.Reset} }
		return suite.Clock{
			NewTimer:  func(d time.Duration) suite.Timer { return adapt(m.Timer(d)) },
			AfterFunc: func(d time.Duration, f func()) suite.Timer { return adapt(m.AfterFunc(d, f)) },
		}, m.Add
	}, func(*testing.T) (suite.Clock, func(time.Duration)) {
		m := clock.NewMock()
		adapt := func(t *clock.Timer) suite.Timer { return suite.Timer{C: t.C, Stop: t.Stop, Reset: t.Reset} }
		return suite.Clock{
			NewTimer:  func(d time.Duration) suite.Timer { return adapt(m.Timer(d)) },
			AfterFunc: func(d time.Duration, f func()) suite.Timer { return adapt(m.AfterFunc(d, f)) },
		}, m.Add
	})
}

func TestMock_DueAndWaitForAllTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where other goroutines get what they need
		m := clock.NewMock()
		ran := make(chan time.Time, 2)
		m.AfterFunc(0, func() {
			ran <- m.Now()
			m.AfterFunc(time.Second, func() { ran <- m.Now() })
		})
		start := m.Now()
		if end := m.WaitForAllTimers(); !end.Equal(start.Add(time.Second)) {
			t.Errorf("all timers have fired at %v", end)
		}
		if first, second := <-ran, <-ran; !first.Equal(start) || !second.Equal(start.Add(time.Second)) {
			t.Errorf("they ran at %v and %v", first, second)
		}
	})
}

// A context's deadline is one of the time that Now tells, after this was set back too.
func TestMock_DeadlineAfterSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := clock.NewMock()
		m.Add(time.Hour)
		m.Add(-10 * time.Minute)
		start := m.Now()
		outer, cancel := m.WithTimeout(context.Background(), 7*time.Minute)
		defer cancel()
		inner, cancel := m.WithDeadline(outer, start.Add(5*time.Minute))
		defer cancel()
		later, cancel := m.WithDeadline(outer, start.Add(8*time.Minute))
		defer cancel()
		child, cancel := context.WithCancel(inner)
		defer cancel()
		for _, tt := range []struct {
			ctx  context.Context
			want time.Duration
		}{{outer, 7 * time.Minute}, {inner, 5 * time.Minute}, {later, 7 * time.Minute}, {child, 5 * time.Minute}} {
			if d, ok := tt.ctx.Deadline(); !ok || !d.Equal(start.Add(tt.want)) {
				t.Errorf("the deadline is %v, %v, want %v", d, ok, start.Add(tt.want))
			}
		}
		m.Add(5*time.Minute - 1)
		if err := inner.Err(); err != nil {
			t.Errorf("just before its deadline: %v", err)
		}
		m.Add(1)
		synctest.Wait()
		if inner.Err() != context.DeadlineExceeded || child.Err() != context.DeadlineExceeded || outer.Err() != nil {
			t.Errorf("at the inner deadline: %v, %v, %v", inner.Err(), child.Err(), outer.Err())
		}
		m.Add(2 * time.Minute)
		synctest.Wait()
		if outer.Err() != context.DeadlineExceeded || later.Err() != context.DeadlineExceeded {
			t.Errorf("at the outer deadline: %v, %v", outer.Err(), later.Err())
		}
	})
}
