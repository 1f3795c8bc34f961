package timer_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// bytesEach returns how many bytes each Scheduler made by make keeps in use. It returns
// the median of three measurements: memory of earlier tests may be freed during one.
func bytesEach(make func() *timer.Scheduler) int64 {
	var measured [3]int64
	for i := range measured {
		var ss [50]*timer.Scheduler
		before := heap()
		for j := range ss {
			ss[j] = make()
		}
		measured[i] = (heap() - before) / int64(len(ss))
		for _, s := range ss {
			s.Close()
		}
		runtime.KeepAlive(ss)
	}
	slices.Sort(measured[:])
	return measured[1]
}

// A Scheduler's memory depends on its timers, not on the number of procs or shards.
func TestMemory_OfASchedulerWithFewTimers(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the figures are for 64-bit machines")
	}
	idle := bytesEach(func() *timer.Scheduler { return timer.New(timer.WithShards(64)) })
	t.Logf("idle: %d bytes", idle)
	require.InDelta(t, 3_000, idle, 500)
	for _, c := range []struct {
		delays []time.Duration
		chunks int64
	}{
		{[]time.Duration{time.Second}, 1},
		{[]time.Duration{30 * time.Second}, 1},
		{[]time.Duration{time.Hour}, 1},
		{[]time.Duration{1 << 62}, 1},
		{[]time.Duration{time.Second, time.Minute, time.Hour}, 1},
		{[]time.Duration{time.Second, time.Minute, time.Hour, 1000 * time.Hour}, 2},
	} {
		some := bytesEach(func() *timer.Scheduler {
			s := timer.New(timer.WithShards(64))
			for _, d := range c.delays {
				_, err := s.Start(d, func() {})
				require.NoError(t, err)
			}
			return s
		})
		t.Logf("with timers of %v: %d bytes", c.delays, some)
		require.InDelta(t, 33_500*c.chunks, some-idle, 4_000, c.delays)
	}
}

// Measures the memory that TakeLeftover's result takes for each timer.
func TestMemory_OfLeftovers(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the figures are for 64-bit machines")
	}
	const n = 100_000
	s := timer.New()
	for range n {
		start(t, s, time.Hour, func() {})
	}
	s.Close()
	left := s.TakeLeftover()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range left {
	}
	runtime.ReadMemStats(&after)
	require.InDelta(t, 48, float64(after.TotalAlloc-before.TotalAlloc)/n, 4)
}
