package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

func TestDeadline_ReadBack(t *testing.T) {
	s, clk := virtual(t, timer.WithSlack(0.5, 0, time.Hour))
	h := start(t, s, time.Minute, func() {})
	is := func(want time.Duration, at time.Time, ok bool) {
		t.Helper()
		require.True(t, ok)
		require.Equal(t, want, at.Sub(epoch))
	}
	at, ok := h.Deadline()
	is(time.Minute, at, ok) // the requested deadline, without the slack

	clk.Advance(time.Second)
	require.True(t, h.Move(time.Minute))
	at, ok = h.Deadline()
	is(61*time.Second, at, ok)

	clk.Advance(time.Hour)
	_, ok = h.Deadline()
	require.False(t, ok, "it has fired")
	stopped := start(t, s, time.Minute, func() {})
	stopped.Stop()
	_, ok = stopped.Deadline()
	require.False(t, ok)
	_, ok = timer.Handle{}.Deadline()
	require.False(t, ok)
}
