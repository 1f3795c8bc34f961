package timer

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// In Kafka, two threads made the first overflow wheel at the same time. One wheel was
// lost with its timers.
func TestKafka2112_TwoThreadsMakeTheFirstOverflowWheel(t *testing.T) {
	const goroutines = 2
	for range 500 {
		s := New(WithShards(1), WithWheelSize(4), WithTick(time.Second))
		var ready, wg sync.WaitGroup
		var set atomic.Bool
		ready.Add(goroutines)
		hs := make([]Handle, goroutines)
		for g := range goroutines {
			wg.Go(func() {
				ready.Done()
				for !set.Load() {
					runtime.Gosched()
				}
				hs[g], _ = s.Start(6*time.Second, func() {})
			})
		}
		ready.Wait()
		set.Store(true)
		wg.Wait()
		sh := s.shards.shardAt(0)
		sh.mu.Lock()
		levels := sh.wheel.Levels()
		sh.mu.Unlock()
		require.Equal(t, 2, levels)
		require.Equal(t, goroutines, s.Len())
		for _, h := range hs {
			require.True(t, h.Stop())
		}
		require.Empty(t, closeAll(s))
	}
}
