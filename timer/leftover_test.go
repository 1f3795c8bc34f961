package timer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/timer"
)

func TestLeftover_IsTakenOnce(t *testing.T) {
	s := timer.New()
	for range 3 {
		_, err := s.Start(time.Hour, func() {})
		require.NoError(t, err)
	}
	require.Empty(t, slices.Collect(s.TakeLeftover()), "it is not closed")
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Close())
	left := s.TakeLeftover()
	require.Empty(t, slices.Collect(s.TakeLeftover()))
	for range 2 { // the result can be ranged over again
		require.Len(t, slices.Collect(left), 3)
	}
	require.EqualValues(t, 3, s.Stats().HandedBack)
}

// Close hands back each timer together with its Handle.
func TestLeftover_HasHandle(t *testing.T) {
	s := timer.New(timer.WithShards(4))
	want := map[timer.Handle]time.Duration{}
	for i := range 1000 {
		d := time.Duration(1+i) * time.Hour
		want[must(s.Start(d, func() {}))] = d
	}
	for h := range want { // move one timer
		require.True(t, h.Move(time.Minute))
		want[h] = time.Minute
		break
	}
	s.NewTimer(time.Hour)
	s.AfterFunc(time.Hour, func() {})
	now := s.Now()
	require.NoError(t, s.Shutdown(t.Context()))
	others := 0
	for l := range s.TakeLeftover() {
		d, known := want[l.Handle]
		switch {
		case known:
			require.WithinDuration(t, now.Add(d), l.Deadline, time.Minute)
			require.NotNil(t, l.Func)
			require.False(t, l.Handle.Stop(), "a leftover timer cannot be stopped")
			delete(want, l.Handle)
		default:
			others++
		}
	}
	require.Empty(t, want)
	require.Equal(t, 2, others)
}
