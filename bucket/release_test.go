package bucket

import (
	"math/rand/v2"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// A stale Ref finds no other entry, even after all memory was given back.
func TestArenaRelease_RefsStayStale(t *testing.T) {
	var a Arena[int]
	require.True(t, a.Release(), "of the zero Arena")
	var stale []Ref
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 8 {
		var b Bucket
		n := 1 + rng.IntN(3*ChunkSize)
		k := 1 + rng.IntN(ChunkSize) // buckets get the slots of former entries, and the reverse
		if round%2 == 0 {
			b = a.NewBuckets(k)
		}
		all := fill(&a, n)
		if round%2 == 1 {
			b = a.NewBuckets(k)
		}
		for range 50 {
			i := rng.IntN(n)
			stale = append(stale, a.Ref(all[i]))
			a.Free(all[i])
			all[i] = a.New(0, 0)
		}
		for i := range all {
			a.PushBack(b+Bucket(i%k), all[i])
		}
		live := refs(&a, all)
		requireFound(t, &a, all, live)
		requireStale(t, &a, stale)
		checkArena(t, &a)
		for i, r := range live {
			require.False(t, a.Release(), "there are entries")
			_, ok := a.Remove(r)
			require.True(t, ok, "entry %d", i)
		}
		stale = append(stale, live...)
		requireStale(t, &a, stale)
		require.True(t, a.Release())
		require.Zero(t, a.Chunks())
		require.Zero(t, a.Len())
		requireStale(t, &a, stale)
		require.True(t, a.Release(), "again")
	}
	require.Greater(t, a.New(0, 0), Index(0))
	requireStale(t, &a, stale)
}

// The highest generation may belong to a chunk that was given back before Release.
func TestArenaRelease_AfterChunksWereGivenBack(t *testing.T) {
	var a Arena[int]
	all := fill(&a, 3*ChunkSize)
	a.chunkSlots[2].headers[7].setLive(1000)
	old := a.Ref(all[ChunkSize+7])
	require.EqualValues(t, 1000, old.gen())
	freeAll(&a, all)
	require.Nil(t, a.chunkSlots[2])
	require.True(t, a.Release())
	for range 3 {
		all = fill(&a, 3*ChunkSize)
		requireStale(t, &a, []Ref{old})
		freeAll(&a, all)
		require.True(t, a.Release())
	}
}

// Release refuses if a slot has used half of its generations, because all other slots
// would then start from that slot's generation.
func TestArenaRelease_NotWhenGenerationsRunOut(t *testing.T) {
	for _, c := range []struct {
		gen  uint64 // the highest that is given
		want bool
	}{{maxGen/2 - 1, true}, {maxGen / 2, false}, {maxGen - 1, false}, {maxGen, false}} {
		var a Arena[int]
		all := fill(&a, 2*ChunkSize)
		a.chunkSlots[1].headers[3].setLive(c.gen)
		stale := refs(&a, all)
		freeAll(&a, all)
		require.Equal(t, c.want, a.Release(), "generation %d", c.gen)
		all = fill(&a, 2*ChunkSize)
		requireStale(t, &a, stale)
		freeAll(&a, all)
		checkArena(t, &a)
	}
}

func TestArenaRelease_LetsGoOfTheMemory(t *testing.T) {
	a := new(Arena[int])
	a.NewBuckets(257)
	a.Free(a.New(0, 1))
	m := weak.Make(a.chunkSlots[1])
	before := heapInUse()
	require.NotNil(t, m.Value())
	require.True(t, a.Release())
	require.Less(t, heapInUse(), before-20<<10)
	require.Nil(t, m.Value())
	require.EqualValues(t, 1<<chunkShift, a.New(0, 1))
}
