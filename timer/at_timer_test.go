package timer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestTimerDeadline(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	for name, s := range map[string]*timer.Scheduler{
		"wheel": timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline())),
		"slack": timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithSlack(0.5, time.Second, time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			defer s.Close()
			is := func(tm *timer.Timer, d time.Duration) {
				t.Helper()
				at, ok := tm.Deadline()
				require.True(t, ok)
				require.Equal(t, clk.Now().Add(d), at)
			}
			none := func(tm *timer.Timer) {
				t.Helper()
				_, ok := tm.Deadline()
				require.False(t, ok)
			}
			for _, make := range []func() *timer.Timer{
				func() *timer.Timer { return s.AfterFunc(time.Minute, func() {}) },
				func() *timer.Timer { return s.NewTimer(time.Minute) },
			} {
				tm := make()
				is(tm, time.Minute)
				tm.Reset(time.Hour) // to later, to earlier, and after a Stop
				is(tm, time.Hour)
				tm.Reset(time.Second)
				is(tm, time.Second)
				require.True(t, tm.Stop())
				none(tm)
				tm.Reset(2 * time.Hour)
				is(tm, 2*time.Hour)
				clk.Advance(time.Hour)
				is(tm, time.Hour)
				clk.Advance(3 * time.Hour)
				none(tm)
				tm.Reset(time.Hour)
				is(tm, time.Hour)
			}
			last := s.AfterFunc(time.Hour, func() {})
			last.Reset(2 * time.Hour)
			require.NoError(t, s.Close())
			none(last)
		})
	}
	_, ok := new(timer.Timer).Deadline()
	require.False(t, ok)
	synctest.Test(t, func(t *testing.T) {
		tm := timer.NewTimer(time.Hour)
		_, ok := tm.Deadline()
		require.False(t, ok)
		tm.Stop()
	})
}
