package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server is told for how long to wait in whole milliseconds, of which 0 would be for
// ever.
func TestWithReplicas_SaysHowLongToWait(t *testing.T) {
	for d, millis := range map[time.Duration]int64{
		time.Microsecond:        1,
		1500 * time.Microsecond: 1,
		300 * time.Millisecond:  300,
		time.Minute + 1:         60_000,
	} {
		require.Equal(t, []any{"wait", 3, millis}, waitCommand(3, d))
	}
}
