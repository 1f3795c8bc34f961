package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However soon it is set anew each time, the alarm rings no more often than its
// pace and its burst allow.
func TestAlarm_KeepsItsPace(t *testing.T) {
	const rings = burst + 200
	done := make(chan time.Duration)
	start := time.Now()
	n := 0
	var a Alarm
	a = New(func() {
		if n++; n == rings {
			done <- time.Since(start)
			return
		}
		a.Reset(0)
	})
	defer a.Close()
	a.Reset(0)
	require.GreaterOrEqual(t, <-done, (rings-burst-1)*spacing)
}
