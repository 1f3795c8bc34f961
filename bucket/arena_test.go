package bucket_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/bucket"
)

// The package's methods against slices and a map. (What is below has a model test of its
// own, in internal/slab.)
func TestArena_AgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type entry struct {
		i        bucket.Index
		ref      bucket.Ref
		deadline int64
	}
	var a bucket.Arena[int]
	first := a.NewBuckets(2)
	buckets := []bucket.Bucket{first, first + 1}
	lists := make([][]int, 2)
	entries := map[int]*entry{}
	var stale []bucket.Ref
	where := func(v int) (b, at int) {
		for b, l := range lists {
			for at, w := range l {
				if v == w {
					return b, at
				}
			}
		}
		return -1, -1
	}
	drop := func(v int) {
		b, at := where(v)
		lists[b] = append(lists[b][:at:at], lists[b][at+1:]...)
		stale = append(stale, entries[v].ref)
		delete(entries, v)
	}
	for step := range 20_000 {
		v := -1
		for v = range entries {
			break
		}
		b := rng.IntN(2)
		switch op := rng.IntN(8); {
		case op < 3 || v < 0:
			i := a.New(int64(step), step)
			a.PushBack(buckets[b], i)
			lists[b] = append(lists[b], step)
			entries[step] = &entry{i, a.Ref(i), int64(step)}
		case op == 3:
			i, ok := a.Find(entries[v].ref)
			require.True(t, ok)
			require.Equal(t, entries[v].i, i)
			a.Unlink(i)
			require.Equal(t, v, a.Free(i))
			drop(v)
		case op == 4:
			got, ok := a.Remove(entries[v].ref)
			require.True(t, ok)
			require.Equal(t, v, got)
			drop(v)
		case op == 5:
			entries[v].deadline = rng.Int64()
			a.SetDeadline(entries[v].i, entries[v].deadline)
		case op == 6:
			a.MoveAll(buckets[b], buckets[1-b])
			lists[b], lists[1-b] = append(lists[b], lists[1-b]...), nil
		case op == 7 && len(stale) > 0:
			_, ok := a.Find(stale[rng.IntN(len(stale))])
			require.False(t, ok)
			_, ok = a.Remove(stale[rng.IntN(len(stale))])
			require.False(t, ok)
		}
		require.Equal(t, len(entries), a.Len())
		if step%100 == 0 {
			for b, l := range lists {
				require.Equal(t, len(l) == 0, a.Empty(buckets[b]))
				var got []int
				for i, ok := a.Front(buckets[b]); ok; i, ok = a.Next(buckets[b], i) {
					got = append(got, a.Value(i))
					require.Equal(t, entries[a.Value(i)].deadline, a.Deadline(i))
				}
				require.Equal(t, len(l), len(got))
				for n := range l {
					require.Equal(t, l[n], got[n])
				}
			}
		}
	}
	require.False(t, a.Release(), "it has entries")
	for _, e := range entries {
		a.Remove(e.ref)
	}
	require.True(t, a.Release())
	require.Zero(t, a.Len())
}

// An entry in no bucket can be removed as one in a bucket can.
func TestArenaRemove_InNoBucket(t *testing.T) {
	var a bucket.Arena[string]
	x := a.Ref(a.New(1, "x"))
	v, ok := a.Remove(x)
	require.True(t, ok)
	require.Equal(t, "x", v)

	b := a.NewBuckets(1)
	i, j := a.New(1, "i"), a.New(2, "j")
	a.PushBack(b, i)
	a.PushBack(b, j)
	ri, rj := a.Ref(i), a.Ref(j)
	a.Unlink(i) // its owner holds it
	_, ok = a.Remove(rj)
	require.True(t, ok)
	v, ok = a.Remove(ri)
	require.True(t, ok)
	require.Equal(t, "i", v)
	require.True(t, a.Empty(b))
	require.Zero(t, a.Len())
}

func TestArenaNewBuckets_None(t *testing.T) {
	var a bucket.Arena[string]
	require.PanicsWithValue(t, "bucket: NewBuckets makes one bucket at least, got 0", func() { a.NewBuckets(0) })
	require.PanicsWithValue(t, "bucket: NewBuckets makes one bucket at least, got -1", func() { a.NewBuckets(-1) })
}
