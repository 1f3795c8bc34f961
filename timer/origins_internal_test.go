package timer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timertest"
)

// The notes of timers that are gone are given up as others come.
func TestOrigins_StayFew(t *testing.T) {
	s := New(WithClock(timertest.NewClock(time.Unix(1e9, 0))), WithOrigins(1))
	defer s.Close()
	keep := 0
	for i := range 100_000 {
		tm := s.AfterFunc(time.Hour, func() {})
		if i%1000 == 0 {
			keep++
		} else {
			tm.Stop()
		}
		so := &s.origins.shards[0]
		require.LessOrEqual(t, len(so.notes), 2*keep+8)
	}
	require.LessOrEqual(t, cap(s.origins.shards[0].notes), 1024)
}
