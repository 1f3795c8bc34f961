package hashmap

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// check compares a Map with a Go map.
func check(t *testing.T, m *Map[int, int], want map[int]int) {
	t.Helper()
	require.Equal(t, len(want), m.Len())
	require.Equal(t, want, maps.Collect(m.All()))
	for key := range m.old {
		require.NotContains(t, m.entries, key)
	}
}

func TestMap_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var m Map[int, int]
	want := map[int]int{}
	shrunk := 0
	for round := range 40 {
		// Rounds in which it grows, and rounds in which it shrinks.
		for range 3000 {
			key := rng.IntN(600)
			before := m.old != nil
			if rng.IntN(20) < 1+18*(round%2^1) {
				v := rng.Int()
				m.Put(key, v)
				want[key] = v
			} else {
				m.Delete(key)
				delete(want, key)
			}
			if m.old != nil && !before {
				shrunk++
			}
			key = rng.IntN(600)
			got, ok := m.Get(key)
			v, has := want[key]
			require.Equal(t, has, ok)
			require.Equal(t, v, got)
			if rng.IntN(500) == 0 {
				check(t, &m, want)
			}
		}
		check(t, &m, want)
	}
	require.Positive(t, shrunk)
	m.Clear()
	check(t, &m, map[int]int{})
}

// However large the map has been, one Delete does little.
func TestMap_DeleteMovesFewAtATime(t *testing.T) {
	var m Map[int, int]
	const n = 1 << 16
	for i := range n {
		m.Put(i, i)
	}
	moving := 0
	for i := range n {
		left := len(m.old)
		m.Delete(i)
		if m.old != nil {
			moving++
			if left > 0 {
				require.LessOrEqual(t, left-len(m.old), moves+1)
			}
			require.LessOrEqual(t, len(m.entries), moves*moving)
		}
	}
	require.Greater(t, moving, n/8/(moves+1)-1)
	require.Zero(t, m.Len())
}

func TestMap_MemoryFalls(t *testing.T) {
	var m Map[int, [4]int]
	empty := heap()
	const n = 1 << 18
	for i := range n {
		m.Put(i, [4]int{})
	}
	full := heap() - empty
	for i := range n - 1000 {
		m.Delete(i)
	}
	left := heap() - empty
	require.Less(t, left, full/20, "full: %v", full)
	require.Equal(t, 1000, m.Len())
	for i := range n {
		m.Delete(i)
	}
	require.Less(t, heap()-empty, full/200)
	runtime.KeepAlive(&m)
}

func heap() float64 {
	var st runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&st)
	return float64(st.HeapAlloc)
}
