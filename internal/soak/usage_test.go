package soak

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// usage is what the process takes at a moment.
type usage struct {
	at          time.Duration
	heap        uint64
	goroutines  int
	descriptors int // 0 where they cannot be counted
}

func take() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd")
	return usage{now(), m.HeapAlloc, runtime.NumGoroutine(), len(open)}
}

// settle has the runtime open the descriptors that it keeps.
func settle(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, w.Close())
}

// flat requires that the last third of a run took no more than the second: the first
// one fills what is kept.
func flat(t *testing.T, seen []usage) {
	t.Helper()
	third := len(seen) / 3
	most := func(us []usage) (m usage) {
		for _, u := range us {
			m.heap = max(m.heap, u.heap)
			m.goroutines = max(m.goroutines, u.goroutines)
			m.descriptors = max(m.descriptors, u.descriptors)
		}
		return m
	}
	earlier, later := most(seen[third:2*third]), most(seen[2*third:])
	t.Logf("at most, second third and last: %.1f and %.1f MB, %d and %d goroutines, %d and %d descriptors",
		float64(earlier.heap)/1e6, float64(later.heap)/1e6, earlier.goroutines, later.goroutines, earlier.descriptors, later.descriptors)
	if now() < time.Minute {
		return // it is still filling
	}
	require.Less(t, float64(later.heap), 1.25*float64(earlier.heap)+2e6, "bytes")
	require.LessOrEqual(t, later.goroutines, 2*earlier.goroutines+20)
	require.LessOrEqual(t, later.descriptors, earlier.descriptors+2)
}

// left requires that nothing of a run is left but what the runtime keeps.
func left(t *testing.T, before usage) {
	t.Helper()
	for {
		u := take()
		if u.goroutines <= before.goroutines {
			require.LessOrEqual(t, u.descriptors, before.descriptors)
			t.Logf("left: %.1f MB more than before", (float64(u.heap)-float64(before.heap))/1e6)
			return
		}
		runtime.Gosched() // a goroutine in its last instructions; one that stays is a test that does not end
	}
}
