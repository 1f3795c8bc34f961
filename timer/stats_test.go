package timer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestStats_ExecutorAndRefused(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithMaxPending(2))
	for range 5 {
		_, _ = s.Start(time.Second, describedCallback)
	}
	clk.Advance(time.Second)
	require.NoError(t, s.Close())
	_, err := s.Start(time.Second, describedCallback)
	require.ErrorIs(t, err, timer.ErrClosed)
	st := s.Stats()
	require.EqualValues(t, 4, st.Rejected)
	require.EqualValues(t, 3, st.RejectedFull)
	require.EqualValues(t, 2, st.Executor.Run)
}

// Both print as one line that people can read.
func TestStats_String(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithTick(time.Millisecond))
	defer s.Close()
	require.Equal(t, "0 pending, 0 started", fmt.Sprint(s.Stats()))
	require.Equal(t, "none", fmt.Sprint(s.Stats().Lateness))
	s.AfterFunc(time.Hour, func() {})
	s.AfterFunc(500*time.Microsecond, func() {})
	clk.Advance(2 * time.Millisecond)
	require.Equal(t, "1 pending, 2 started, 1 fired; late p50 500µs, p99 500µs, max 500µs of 1", fmt.Sprintf("%v", s.Stats()))
	require.NotContains(t, fmt.Sprintf("%+v", s.Stats()), "\n")
}
