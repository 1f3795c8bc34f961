package timingwheel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

// Sweep comes to every entry with the tag, few slots at a time, and removes those that
// are dead and no others.
func TestWheel_Sweep(t *testing.T) {
	for _, n := range []int{0, 1, 3, 5 * bucket.ChunkSize} {
		w := newWheel[int](t, 1, 4, 0)
		ids := make([]ID, n)
		for i := range ids {
			ids[i], _ = w.AddTagged(int64(1+i*7), 0, i, uint8(i%3))
		}
		for i := range ids {
			if i%5 == 0 {
				w.Remove(ids[i])
			}
		}
		looked, rounds := map[int]bool{}, 0
		for place, more := uint64(0), true; more; rounds++ {
			place, more = w.Sweep(place, 100, 2, func(v int) bool {
				require.False(t, looked[v])
				looked[v] = true
				return v%2 == 0
			})
		}
		require.LessOrEqual(t, rounds, n/100+bucket.ChunkSize/100+2) // and the sentinels
		for i, id := range ids {
			gone := i%5 == 0
			require.Equal(t, !gone && i%3 == 2, looked[i])
			require.Equal(t, !gone && !(looked[i] && i%2 == 0), w.Contains(id))
		}
		checkWheel(t, w)
	}
}

// Memory that was given back takes none of the places that a call looks at.
func TestWheel_SweepAndScanPassOverWhatWasGivenBack(t *testing.T) {
	const n = 100 * bucket.ChunkSize
	w := newWheel[int](t, 1, 4, 0)
	ids := make([]ID, n)
	for i := range ids {
		ids[i], _ = w.AddTagged(int64(1+i), 0, i, 2)
	}
	for i, id := range ids {
		if i > 0 && i < n-1 {
			w.Remove(id)
		}
	}
	const places = 10 * bucket.ChunkSize // more than those of the two, a spare one, the slots'
	var seen []int
	_, more := w.Scan(0, places, func(e Entry[int]) { seen = append(seen, e.Value) })
	require.False(t, more)
	require.ElementsMatch(t, []int{0, n - 1}, seen)
	_, more = w.Sweep(0, places, 2, func(int) bool { return true })
	require.False(t, more)
	require.Zero(t, w.Len())
	checkWheel(t, w)
}

func TestWheel_Due(t *testing.T) {
	w := newWheel[int](t, 10, 4, 0)
	for _, c := range []struct{ deadline, slack, due int64 }{
		{7, 0, 7}, {7, 2, 7}, {7, 4, 7}, {7, 13, 20}, {25, 60, 60}, {25, 40, 40}, {81, 100, 160},
	} {
		require.Equal(t, c.due, w.Due(c.deadline, c.slack), c)
		if c.slack > 0 {
			_, ok := w.AddWithin(c.deadline, c.slack, 1)
			require.True(t, ok)
			out := make([]Expired[int], 1)
			n, _ := w.Advance(200, out)
			require.Equal(t, 1, n)
			require.Equal(t, c.due, out[0].Due)
			w = newWheel[int](t, 10, 4, 0)
		}
	}
}
