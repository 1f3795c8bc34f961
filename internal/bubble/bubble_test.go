package bubble

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInside(t *testing.T) {
	require.False(t, Inside())
	synctest.Test(t, func(t *testing.T) {
		require.True(t, Inside())
	})
}

func TestMonotonic(t *testing.T) {
	now := time.Now()
	require.True(t, HasMonotonic(now))
	require.True(t, HasMonotonic(now.Add(time.Hour)))
	require.False(t, HasMonotonic(now.Round(0)))
	require.False(t, HasMonotonic(time.Time{}))
	require.False(t, HasMonotonic(now.Add(math.MaxInt64)), "Add drops a reading that overflows")
}
