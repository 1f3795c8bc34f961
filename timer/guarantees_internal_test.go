package timer

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// On the system's clock, the epoch has a monotonic reading, which setting the wall clock
// does not affect. In a bubble nobody can set the clock.
func TestGuarantee10_EpochIsMonotonic(t *testing.T) {
	s := New()
	defer s.Close()
	require.NotEqual(t, s.epoch.Round(0), s.epoch)
	before := s.now()
	require.GreaterOrEqual(t, s.now(), before)
	require.NotEqual(t, s.timeAt(1).Round(0), s.timeAt(1), "what the queue gets")
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		require.True(t, s.epoch == s.epoch.Round(0))
	})
}
