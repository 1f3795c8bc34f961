package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two timers of one tick fire together. So the callback of one comes too late to stop the
// other.
func TestStop_WithinOneTick(t *testing.T) {
	s, clk := virtual(t)
	ran := 0
	hs := make([]interface{ Stop() bool }, 2)
	for i := range hs {
		hs[i] = start(t, s, time.Second, func() {
			ran++
			require.False(t, hs[1-i].Stop())
		})
	}
	clk.Advance(time.Second)
	require.Equal(t, len(hs), ran)
}
