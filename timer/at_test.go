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
	k := timer.NewKeyed(s, func(string, int) {})
	require.NoError(t, k.Set("a", 1, time.Hour))
	is := func(want time.Duration, at time.Time, ok bool) {
		t.Helper()
		require.True(t, ok)
		require.Equal(t, want, at.Sub(epoch))
	}
	at, ok := h.Deadline()
	is(time.Minute, at, ok) // what was asked for, without the slack
	at, ok = k.Deadline("a")
	is(time.Hour, at, ok)

	clk.Advance(time.Second)
	require.True(t, h.Reset(time.Minute))
	require.True(t, k.Move("a", time.Minute))
	at, ok = h.Deadline()
	is(61*time.Second, at, ok)
	at, ok = k.Deadline("a")
	is(61*time.Second, at, ok)

	_, ok = k.Deadline("b")
	require.False(t, ok)
	clk.Advance(time.Hour)
	_, ok = h.Deadline()
	require.False(t, ok, "it has fired")
	_, ok = k.Deadline("a")
	require.False(t, ok)
	stopped := start(t, s, time.Minute, func() {})
	stopped.Stop()
	_, ok = stopped.Deadline()
	require.False(t, ok)
	_, ok = timer.Handle{}.Deadline()
	require.False(t, ok)
}
