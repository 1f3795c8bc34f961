package clock_test

import (
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
