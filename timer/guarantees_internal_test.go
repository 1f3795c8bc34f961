package timer

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// On the system's clock every moment is a difference to the epoch, and has no
// part of the wall clock in it as long as that has a monotonic reading. That of
// a bubble has none, and no wall clock to leap.
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
