package timer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/internal/wheel"
)

// Who looks at all timers of a shard, or at some chosen at random, looks at no more than 512
// in one hold of its lock.
func TestShard_LooksAtFewInOneHoldOfItsLock(t *testing.T) {
	const pending, most = 5000, 512
	s, _ := manual(1)
	sh := s.shards.at(0)
	fillFar(t, sh, pending)
	isFree := func() bool {
		ok := sh.mu.TryLock()
		if ok {
			sh.mu.Unlock()
		}
		return ok
	}

	seen, more := 0, true
	for place := uint64(0); more; {
		now := 0
		place, more = sh.scan(place, func(wheel.Entry[payload]) {
			require.False(t, isFree())
			now++
		})
		require.LessOrEqual(t, now, most)
		require.True(t, isFree())
		seen += now
	}
	require.Equal(t, pending, seen)

	seen = 0
	random := rand.New(rand.NewPCG(1, 2))
	found := sh.look(pending, make([]wheel.Sample, pending), random, func(wheel.Sample) {
		require.False(t, isFree())
		seen++
	})
	require.LessOrEqual(t, seen, most)
	require.Equal(t, seen, found)
	require.NotZero(t, found)
	require.True(t, isFree())
}
