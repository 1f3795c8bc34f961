package timer

import (
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leftoverOf closes s and returns its leftover timers.
func leftoverOf(s *Scheduler) iter.Seq[Leftover] {
	s.Close()
	return s.TakeLeftover()
}

// closeAll closes s and returns the timers that were pending.
func closeAll(s *Scheduler) []Leftover { return slices.Collect(leftoverOf(s)) }

// Close locks one shard after another. While it waits for a shard, all shards already
// refuse starts.
func TestClose_IsMonotonic(t *testing.T) {
	s := New(WithShards(3))
	start := func(sh *shard) error {
		sh.mu.Lock()
		defer sh.unlock()
		id, err := sh.startLocked(s.now(), time.Hour, 0, funcPayload(func() {}), tagFunc)
		sh.stopLocked(id)
		return err
	}
	s.shards.shardAt(1).mu.Lock()
	var wg sync.WaitGroup
	wg.Go(func() { s.Close() })
	for start(s.shards.shardAt(0)) == nil {
		runtime.Gosched()
	}
	require.ErrorIs(t, start(s.shards.shardAt(2)), ErrClosed)
	s.shards.shardAt(1).mu.Unlock()
	wg.Wait()
	for _, sh := range allShards(s) {
		require.ErrorIs(t, start(sh), ErrClosed)
	}
}

// Each loop over the result of TakeLeftover collects the timers again.
func TestClose_CollectsOnDemand(t *testing.T) {
	s := New()
	const n = 200_000
	for i := range n {
		_, err := s.Start(time.Duration(i+1)*time.Hour, func() {})
		require.NoError(t, err)
	}
	before := allocated()
	left := leftoverOf(s)
	require.Less(t, allocated()-before, uint64(1_000_000), "bytes: Close must not allocate for each timer")
	for range 2 {
		var last time.Time
		got := 0
		for p := range left {
			require.False(t, p.Deadline.Before(last))
			last = p.Deadline
			got++
		}
		require.Equal(t, n, got)
	}
	for range left {
		break
	}
	require.Empty(t, closeAll(s))
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
