package timer_test

import (
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
