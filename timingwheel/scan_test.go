package timingwheel

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkScan fails unless a scan visits every entry once, with its ID.
func checkScan[T any](tb testing.TB, w *Wheel[T]) {
	tb.Helper()
	met := make(map[ID]Entry[T], w.Len())
	more := true
	for place := uint64(0); more; {
		place, more = w.Scan(place, 700, func(e Entry[T]) {
			if _, twice := met[e.ID]; twice {
				tb.Fatalf("a scan meets an entry of deadline %d twice", e.Deadline)
			}
			met[e.ID] = e
		})
	}
	for id, e := range met {
		deadline, ok := w.Deadline(id)
		if tag, _ := w.Tag(id); !ok || deadline != e.Deadline || tag != e.Tag {
			tb.Fatalf("a scan meets an entry of deadline %d and tag %d, and the wheel has %d, %v and %d", e.Deadline, e.Tag, deadline, ok, tag)
		}
	}
	if len(met) != w.Len() {
		tb.Fatalf("a scan meets %d entries of %d", len(met), w.Len())
	}
}

func TestWheelScan_WhileEntriesComeAndGo(t *testing.T) {
	w, err := New[int](1, 8, 0)
	require.NoError(t, err)
	const n = 5000
	ids := make([]ID, n)
	for i := range ids {
		ids[i], _ = w.Add(int64(1000+i), i)
	}
	// Between any two calls, all odd entries are removed and new ones are added.
	met := make(map[int]int)
	gone, more := 1, true
	for place := uint64(0); more; {
		place, more = w.Scan(place, 100, func(e Entry[int]) { met[e.Value]++ })
		for range 80 {
			if gone < n {
				_, ok := w.Remove(ids[gone])
				require.True(t, ok)
				w.Add(5000, n+gone)
				gone += 2
			}
		}
	}
	for i := range n {
		if i%2 == 0 {
			require.Equal(t, 1, met[i], "entry %d was in the wheel all the time", i)
		}
		require.LessOrEqual(t, met[i], 1)
	}
}

func TestWheelScan_MemoryGivenBack(t *testing.T) {
	w, err := New[int](1, 8, 0)
	require.NoError(t, err)
	var ids []ID
	for i := range 20_000 {
		id, _ := w.Add(int64(1000+i), i)
		ids = append(ids, id)
	}
	for _, id := range ids[:len(ids)-1] {
		w.Remove(id)
	}
	var met []int
	calls, more := 0, true
	for place := uint64(0); more; calls++ {
		place, more = w.Scan(place, 1024, func(e Entry[int]) { met = append(met, e.Value) })
	}
	require.Equal(t, []int{19_999}, met)
	require.Less(t, calls, 8, "memory that was given back is skipped")
}
