package timer

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// On the system's clock every moment is a difference to the epoch. If the epoch has a
// monotonic reading, the wall clock has no effect. Time in a bubble has no monotonic
// reading, and no wall clock that could be set.
func TestGuarantee10_EpochIsMonotonic(t *testing.T) {
	s := New()
	defer s.Close()
	require.NotEqual(t, s.epoch.Round(0), s.epoch)
	before := s.now()
	require.GreaterOrEqual(t, s.now(), before)
	require.NotEqual(t, s.at(1).Round(0), s.at(1), "what the queue gets")
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		require.True(t, s.epoch == s.epoch.Round(0))
	})
}
