package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

func TestStartAt_FiresAtTheMoment(t *testing.T) {
	s, clk := virtual(t)
	require.Equal(t, epoch, s.Now())
	var at []time.Duration
	note := func() { at = append(at, s.Now().Sub(epoch)) }
	must(s.StartAt(epoch.Add(2*time.Second), note))
	tm := s.AfterFuncAt(epoch.Add(time.Second), note)
	must(s.StartAt(epoch.Add(-time.Hour), note)) // at once
	must(s.StartAt(time.Time{}, note))           // centuries ago
	far := must(s.StartAt(epoch.AddDate(1000, 0, 0), note))
	clk.Advance(0)
	require.Len(t, at, 2)
	clk.Advance(time.Hour)
	require.Equal(t, []time.Duration{0, 0, time.Second, 2 * time.Second}, at)
	require.False(t, tm.Stop())
	require.True(t, far.Stop())
	require.Equal(t, epoch.Add(time.Hour), s.Now())
}

func TestStartAt_Refuses(t *testing.T) {
	s, _ := virtual(t)
	require.PanicsWithValue(t, "timer: Start with a nil func", func() { s.StartAt(epoch, nil) })
	s.Close()
	_, err := s.StartAt(epoch, func() {})
	require.ErrorIs(t, err, timer.ErrClosed)
	require.False(t, s.AfterFuncAt(epoch, func() {}).Stop())
}

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
