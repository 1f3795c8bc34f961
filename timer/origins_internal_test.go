package timer

import (
	"math"
	"testing"
	"testing/synctest"
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

// The steps between two notes are about twice oneIn at most, which must not overflow.
func TestWithOrigins_OneInVeryMany(t *testing.T) {
	for _, oneIn := range []int{math.MaxInt32/2 + 1, math.MaxInt32, math.MaxInt} {
		s := New(WithClock(timertest.NewClock(time.Unix(1e9, 0))), WithOrigins(oneIn), WithShards(1))
		// No Close of it if it panics: that would wait for the shard's lock.
		require.NotPanics(t, func() { s.AfterFunc(time.Hour, func() {}) })
		require.Len(t, s.origins.shards[0].notes, 1)
		s.Close()
	}
}

// Notes of timers that are gone go with the shard's memory, also if nothing is started
// any more.
func TestOrigins_GoWithTheLastTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithOrigins(1))
		defer s.Close()
		hs := make([]Handle, 10_000)
		for i := range hs {
			hs[i], _ = s.Start(time.Hour, func() {})
		}
		for _, h := range hs {
			h.Stop()
		}
		time.Sleep(2*trimAfter + time.Second)
		for sh := range s.shards.made() {
			require.Empty(t, s.origins.of(sh))
		}
	})
}
