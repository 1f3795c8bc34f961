package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// contents returns b's payloads. It fails if the list differs when it is read backwards.
func contents[T any](tb testing.TB, a *Arena[T], b Bucket) []T {
	tb.Helper()
	values := []T{}
	prev := Index(b)
	for i, ok := a.Front(b); ok; i, ok = a.Next(b, i) {
		if a.link(i).prev != prev {
			tb.Fatalf("entry %d points back to %d and not to %d", i, a.link(i).prev, prev)
		}
		if len(values) > a.Len() {
			tb.Fatalf("the list of bucket %d has no end", b)
		}
		values = append(values, a.Value(i))
		prev = i
	}
	if a.link(Index(b)).prev != prev {
		tb.Fatalf("bucket %d ends at %d, but its last entry is %d", b, a.link(Index(b)).prev, prev)
	}
	if a.Empty(b) != (len(values) == 0) {
		tb.Fatalf("bucket %d has %d entries, and Empty says %v", b, len(values), a.Empty(b))
	}
	return values
}

// push makes entries with payloads from first to last, and pushes them to b.
func push(a *Arena[int], b Bucket, first, last int) []Index {
	var all []Index
	for v := first; v <= last; v++ {
		i := a.New(0, v)
		a.PushBack(b, i)
		all = append(all, i)
	}
	return all
}

func span(first, last int) []int {
	s := []int{}
	for v := first; v <= last; v++ {
		s = append(s, v)
	}
	return s
}

func TestBucket_IsFirstInFirstOut(t *testing.T) {
	var a Arena[int]
	b := a.NewBuckets(1)
	require.Empty(t, contents(t, &a, b))
	push(&a, b, 1, 2000)
	require.Equal(t, span(1, 2000), contents(t, &a, b))
	for want := 1; want <= 2000; want++ {
		i, ok := a.Front(b)
		require.True(t, ok)
		a.Unlink(i)
		require.Equal(t, want, a.Free(i))
	}
	_, ok := a.Front(b)
	require.False(t, ok)
	require.Empty(t, contents(t, &a, b))
}

func TestBucketUnlink(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		out  []int
		want []int
	}{
		{"the only one", 1, []int{1}, []int{}},
		{"first", 4, []int{1}, []int{2, 3, 4}},
		{"middle", 4, []int{2}, []int{1, 3, 4}},
		{"last", 4, []int{4}, []int{1, 2, 3}},
		{"neighbours", 4, []int{2, 3}, []int{1, 4}},
		{"both ends", 4, []int{1, 4}, []int{2, 3}},
		{"all, from the back", 3, []int{3, 2, 1}, []int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a Arena[int]
			b := a.NewBuckets(1)
			all := push(&a, b, 1, c.n)
			for _, v := range c.out {
				a.Unlink(all[v-1])
			}
			require.Equal(t, c.want, contents(t, &a, b))
			require.Equal(t, c.n, a.Len(), "an unlinked entry is still live")
			for _, v := range c.out {
				a.PushBack(b, all[v-1])
			}
			require.Equal(t, append(c.want, c.out...), contents(t, &a, b))
		})
	}
}

func TestBucketMove(t *testing.T) {
	var a Arena[int]
	src := a.NewBuckets(2)
	dst := src + 1
	all := push(&a, src, 1, 4)
	push(&a, dst, 5, 5)
	gen := a.Ref(all[1])
	for _, v := range []int{2, 4, 1} { // in the middle, last, first
		i := all[v-1]
		a.Move(i, dst, int64(10*v), uint(v), uint32(100*v))
		require.EqualValues(t, 10*v, a.Deadline(i))
		require.EqualValues(t, v, a.Grain(i))
		require.EqualValues(t, 100*v, a.Place(i))
		require.Equal(t, v, a.Value(i))
	}
	require.Equal(t, gen, a.Ref(all[1]), "it is the same entry")
	require.Equal(t, []int{3}, contents(t, &a, src))
	require.Equal(t, []int{5, 2, 4, 1}, contents(t, &a, dst))
	a.Move(all[1], dst, 0, 0, 0) // within its bucket
	require.Equal(t, []int{5, 4, 1, 2}, contents(t, &a, dst))
}

func TestBucketMoveAll(t *testing.T) {
	for _, d := range []int{0, 1, 3} {
		for _, s := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("dst=%d/src=%d", d, s), func(t *testing.T) {
				var a Arena[int]
				dst := a.NewBuckets(2)
				src := dst + 1
				push(&a, dst, 1, d)
				moved := push(&a, src, d+1, d+s)
				a.SetExpiration(dst, 5)
				a.SetExpiration(src, 7)

				a.MoveAll(dst, src)
				require.Equal(t, span(1, d+s), contents(t, &a, dst))
				require.Empty(t, contents(t, &a, src))
				require.EqualValues(t, 5, a.Expiration(dst))
				require.EqualValues(t, 7, a.Expiration(src))

				// Both buckets still work: entries pushed to src do not appear in dst,
				// and moved entries can be unlinked.
				push(&a, src, 100, 101)
				push(&a, dst, 200, 200)
				require.Equal(t, append(span(1, d+s), 200), contents(t, &a, dst))
				require.Equal(t, []int{100, 101}, contents(t, &a, src))
				for _, i := range moved {
					a.Unlink(i)
				}
				require.Equal(t, append(span(1, d), 200), contents(t, &a, dst))
				require.Equal(t, []int{100, 101}, contents(t, &a, src))
			})
		}
	}
}

func TestBucketExpiration_IsZeroUntilItIsSet(t *testing.T) {
	var a Arena[int]
	b := a.NewBuckets(3)
	a.SetExpiration(b+1, -9)
	require.EqualValues(t, 0, a.Expiration(b))
	require.EqualValues(t, -9, a.Expiration(b+1))
	require.EqualValues(t, 0, a.Expiration(b+2))
}

// Buckets are made before the first entry, between entries, and across the boundaries of
// chunks. No slot is ever both a bucket and an entry.
func TestNewBuckets_BetweenEntries(t *testing.T) {
	for _, first := range []int{0, 1, ChunkSize, 3*ChunkSize + 1} {
		t.Run(fmt.Sprint("entries=", first), func(t *testing.T) {
			var a Arena[int]
			taken := map[Index]bool{}
			claim := func(i Index) {
				require.NotZero(t, i)
				require.False(t, taken[i], "slot %d is given out twice", i)
				taken[i] = true
			}
			var buckets []Bucket
			v := 0
			entries := func(n int) {
				for range n {
					v++
					i := a.New(0, v)
					claim(i)
					if len(buckets) > 0 {
						a.PushBack(buckets[v%len(buckets)], i)
					}
				}
			}
			entries(first)
			for _, k := range []int{1, 1, 2, 256, 256, ChunkSize - 1, ChunkSize, ChunkSize + 1, 5 * ChunkSize, 1} {
				b := a.NewBuckets(k)
				for j := range k {
					claim(Index(b) + Index(j))
					require.True(t, a.Empty(b+Bucket(j)))
					buckets = append(buckets, b+Bucket(j))
				}
				entries(ChunkSize/2 + 3)
			}
			n := 0
			for _, b := range buckets {
				n += len(contents(t, &a, b))
			}
			require.Equal(t, v-first, n)
			checkArena(t, &a)
		})
	}
}

// The arena has the buckets of a timing wheel with three levels, and a few entries.
func TestNewBuckets_ShareAChunkWithEntries(t *testing.T) {
	var a Arena[int]
	const size = 257
	var all []Index
	for round := range 3 {
		b := a.NewBuckets(size)
		for k := range 84 {
			all = append(all, push(&a, b+Bucket(k), k, k)...)
		}
		require.Equal(t, 1, a.Chunks(), "round %d", round)
		checkArena(t, &a)
	}
	all = append(all, fill(&a, ChunkSize-3*(size+84))...)
	require.Equal(t, 1, a.Chunks())
	require.Zero(t, a.currentChunk, "the chunk is full")
	stale := refs(&a, all)
	for _, i := range all[:3*84] {
		a.Unlink(i)
	}
	freeAll(&a, all)
	require.Equal(t, 1, a.Chunks(), "a chunk with buckets is not given back")
	requireStale(t, &a, stale)
	checkArena(t, &a)
	// The chunk is not the spare. It is filled before a new chunk is made.
	require.Zero(t, a.spareChunk)
	fill(&a, ChunkSize-3*size)
	require.Equal(t, 1, a.Chunks())
	fill(&a, 1)
	require.Equal(t, 2, a.Chunks())
	// The first chunk has too little room, so the buckets go to the next.
	a.NewBuckets(size)
	require.Equal(t, 2, a.Chunks())
	checkArena(t, &a)
}

func TestNewBuckets_InTheSpareChunk(t *testing.T) {
	var a Arena[int]
	all := fill(&a, 10)
	stale := refs(&a, all)
	freeAll(&a, all)
	require.NotZero(t, a.spareChunk)
	b := a.NewBuckets(ChunkSize - 10)
	require.Zero(t, a.spareChunk)
	require.Equal(t, 1, a.Chunks())
	checkArena(t, &a)
	for k := range ChunkSize - 10 {
		require.True(t, a.Empty(b+Bucket(k)))
	}
	requireStale(t, &a, stale)
	all = fill(&a, 10)
	require.Equal(t, 1, a.Chunks())
	require.Zero(t, a.currentChunk)
	freeAll(&a, all)
	requireStale(t, &a, stale)
	checkArena(t, &a)
}

func TestNewBuckets_MemoryIsNotCountedAndStays(t *testing.T) {
	var a Arena[int]
	b := a.NewBuckets(10 * ChunkSize)
	require.Zero(t, a.Chunks())
	require.Zero(t, a.Len())
	for range 3 {
		var all []Index
		for k := range 4 * ChunkSize {
			all = append(all, push(&a, b+Bucket(rand.IntN(10*ChunkSize)), k, k)...)
		}
		for _, i := range all {
			a.Unlink(i)
			a.Free(i)
		}
		require.Equal(t, 1, a.Chunks())
	}
	for k := range 10 * ChunkSize {
		require.True(t, a.Empty(b+Bucket(k)))
	}
}
