package soak

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// usage is what the process uses at a moment.
type usage struct {
	at          time.Duration
	heap        uint64 // bytes of live objects
	goroutines  int
	descriptors int // 0 if they cannot be counted
}

// take returns the present usage. It collects garbage twice, because a sync.Pool keeps
// objects for one collection.
func take() usage {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	goroutines := runtime.NumGoroutine() // first: the last goroutines may close descriptors
	open, _ := os.ReadDir("/proc/self/fd")
	return usage{now(), m.HeapAlloc, goroutines, len(open)}
}

func (u usage) String() string {
	return fmt.Sprintf("%.2f MB, %d goroutines, %d descriptors", float64(u.heap)/1e6, u.goroutines, u.descriptors)
}

// lowest returns the lowest usage during a pause. So it includes what leaks, but not what
// is about to be released.
func lowest(pause time.Duration) usage {
	least := take()
	for until := least.at + pause; least.at < until; {
		time.Sleep(time.Second)
		u := take()
		least = usage{u.at, min(least.heap, u.heap), min(least.goroutines, u.goroutines), min(least.descriptors, u.descriptors)}
	}
	return least
}

// middle returns the median of each value.
func middle(us []usage) usage {
	return usage{
		heap:        median(us, func(u usage) uint64 { return u.heap }),
		goroutines:  median(us, func(u usage) int { return u.goroutines }),
		descriptors: median(us, func(u usage) int { return u.descriptors }),
	}
}

// median returns the median of the values. If their number is even, it returns the upper
// of the two in the middle.
func median[T cmp.Ordered](us []usage, of func(usage) T) T {
	var all []T
	for _, u := range us {
		all = append(all, of(u))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// settle makes the runtime open the descriptors that it never closes.
func settle(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, w.Close())
}

// moreHeap is how much larger the live heap may be in the last third of a run than in the
// second third, measured in pauses. It is three times the memory that a pool and the
// runtime keep after the largest burst of timers.
const moreHeap = 512 << 10

// warmGoroutines runs n goroutines at the same time. The runtime keeps their memory, so a
// later burst of n goroutines does not make the heap grow.
func warmGoroutines(n int) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range n {
		wg.Go(func() { <-over })
	}
	close(over)
	wg.Wait()
}

// flat compares usage in pauses of the last third of a run with the second third. (In the
// first third, caches fill.) The heap may grow by moreHeap. The numbers of goroutines and
// descriptors must not grow.
func flat(t *testing.T, seen []usage) {
	t.Helper()
	for i, u := range seen {
		t.Logf("pause %d, %v: %v", i+1, u.at.Round(time.Second), u)
	}
	third := len(seen) / 3
	if third == 0 {
		return // less than three and a half minutes: caches are still filling
	}
	earlier, later := middle(seen[third:2*third]), middle(seen[2*third:])
	t.Logf("medians of the second third and the last: %v; %v", earlier, later)
	require.LessOrEqual(t, later.heap, earlier.heap+moreHeap, "bytes")
	require.LessOrEqual(t, later.goroutines, earlier.goroutines)
	for _, u := range seen[third:] {
		require.LessOrEqual(t, u.descriptors, seen[third].descriptors)
	}
}

// left requires that no goroutine and no descriptor of a run remains.
func left(t *testing.T, before usage) {
	t.Helper()
	for begin := time.Now(); ; {
		u := take()
		if u.goroutines <= before.goroutines {
			require.LessOrEqual(t, u.descriptors, before.descriptors)
			t.Logf("left: %.1f MB more than before", (float64(u.heap)-float64(before.heap))/1e6)
			return
		}
		if time.Since(begin) > time.Minute {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, and %d before:\n%s", u.goroutines, before.goroutines, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched() // lets a goroutine run its last instructions
	}
}
