package keyed

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test compares a table with a map, while it grows and shrinks and grows again.
func TestTable_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	tab := table[int, int]{hashSeed: maphash.MakeSeed()}
	hash := func(key int) uint64 { return maphash.Comparable(tab.hashSeed, key) }
	model := map[int]*entry[int, int]{}
	check := func() {
		t.Helper()
		got := map[int]*entry[int, int]{}
		for e := range tab.entries() {
			require.Nil(t, got[e.key], "twice")
			got[e.key] = e
		}
		require.Equal(t, len(model), int(tab.entryCount))
		require.Len(t, got, len(model))
		for key, e := range model {
			require.Same(t, e, got[key])
			require.Same(t, e, tab.find(hash(key), key))
		}
		require.LessOrEqual(t, tab.chainCount, 2*tab.entryCount)
		require.LessOrEqual(t, 2*tab.entryCount, 3*tab.chainCount)
		require.Equal(t, int(tab.chainCount+chainsPerBlock-1)/chainsPerBlock, len(tab.blocks))
	}
	for _, size := range []int{1, 0, 40, 3, 700, 90, 0, 2000, 0} {
		for len(model) != size {
			key := rng.IntN(4000)
			e := tab.find(hash(key), key)
			require.Same(t, model[key], e)
			switch grow := len(model) < size; {
			case grow && e == nil:
				model[key] = &entry[int, int]{key: key}
				tab.add(hash(key), model[key])
			case !grow && e != nil:
				tab.remove(hash(key), e)
				tab.remove(hash(key), e) // already removed
				delete(model, key)
			}
			if rng.IntN(50) == 0 {
				check()
			}
		}
		check()
	}
}
