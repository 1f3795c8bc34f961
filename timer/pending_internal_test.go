package timer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timingwheel"
)

// Pending reads no more than 512 slots while it holds a shard's lock.
func TestShard_LooksAtFewInOneHoldOfItsLock(t *testing.T) {
	const pending, most = 5000, 512
	s, _ := manual(1)
	sh := s.shards.shardAt(0)
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
		place, more = sh.scanPending(place, func(timingwheel.Entry[payload]) {
			require.False(t, isFree())
			now++
		})
		require.LessOrEqual(t, now, most)
		require.True(t, isFree())
		seen += now
	}
	require.Equal(t, pending, seen)
}
