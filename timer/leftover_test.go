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
	require.Empty(t, slices.Collect(s.Leftover()), "it is not closed")
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Close())
	left := s.Leftover()
	require.Empty(t, slices.Collect(s.Leftover()))
	for range 2 { // what was taken can be looked at again
		require.Len(t, slices.Collect(left), 3)
	}
	require.EqualValues(t, 3, s.Stats().HandedBack)
}
