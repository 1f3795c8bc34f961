package bucket

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// fill makes n entries that are in no bucket.
func fill(a *Arena[int], n int) []Index {
	all := make([]Index, n)
	for k := range all {
		all[k] = a.New(int64(k), k)
	}
	return all
}

func refs(a *Arena[int], all []Index) []Ref {
	r := make([]Ref, len(all))
	for k, i := range all {
		r[k] = a.Ref(i)
	}
	return r
}

func freeAll(a *Arena[int], all []Index) {
	for _, i := range all {
		a.Free(i)
	}
}

// requireStale fails if one of the refs still finds an entry.
func requireStale(t *testing.T, a *Arena[int], stale []Ref) {
	t.Helper()
	for _, r := range stale {
		if i, ok := a.Find(r); ok {
			t.Fatalf("a stale ref of slot %d, generation %d, finds the entry of generation %d", i, r.gen(), a.header(i).gen())
		}
		if _, ok := a.Remove(r); ok {
			t.Fatalf("a stale ref of generation %d removes an entry", r.gen())
		}
	}
}

func requireFound(t *testing.T, a *Arena[int], all []Index, live []Ref) {
	t.Helper()
	for k, r := range live {
		if i, ok := a.Find(r); !ok || i != all[k] {
			t.Fatalf("the ref of entry %d finds %d, %v", all[k], i, ok)
		}
	}
}

func TestArenaFind_NothingThere(t *testing.T) {
	var a Arena[int]
	lookups := func() {
		t.Helper()
		for _, r := range []Ref{
			{},                       // zero
			refOf(1, 0),              // index 0 is no slot
			refOf(0, 1<<chunkShift),  // no generation
			refOf(9, 1<<chunkShift),  // a generation that the slot never had
			refOf(1, 9<<chunkShift),  // beyond the arena
			refOf(1, 1<<indexBits-1), // the largest index
			refOf(maxGen, 1<<(indexBits-1)+chunkMask), // likewise
		} {
			_, ok := a.Find(r)
			require.False(t, ok, "%+v", r)
			_, ok = a.Remove(r)
			require.False(t, ok, "%+v", r)
		}
	}
	lookups() // in the zero Arena
	i := a.New(0, 0)
	require.EqualValues(t, 1<<chunkShift, i)
	lookups()
	_, ok := a.Find(refOf(1, i+1))
	require.False(t, ok, "a slot that was never used")
	b := a.NewBuckets(1)
	_, ok = a.Find(refOf(1, Index(b)))
	require.False(t, ok, "a bucket is no entry")
	_, ok = a.Find(refOf(0, Index(b)))
	require.False(t, ok, "a bucket is no entry, whatever the generation")
	_, ok = a.Remove(refOf(0, Index(b)))
	require.False(t, ok)
}

func TestArenaFind_FreedAndSlotReused(t *testing.T) {
	var a Arena[int]
	other := a.New(0, -1) // keeps the chunk
	var stale []Ref
	var slot Index
	for k := range 1000 {
		i := a.New(0, k)
		if k == 0 {
			slot = i
		}
		require.Equal(t, slot, i, "the test expects the slot to be used again")
		r := a.Ref(i)
		require.NotContains(t, stale[max(0, len(stale)-3):], r)
		got, ok := a.Find(r)
		require.True(t, ok)
		require.Equal(t, i, got)
		requireStale(t, &a, stale)
		require.Equal(t, k, a.Free(i))
		stale = append(stale, r)
		requireStale(t, &a, stale)
	}
	require.Equal(t, -1, a.Value(other))
}

// A stale Ref finds no other entry, even after its chunk was given back and allocated
// again.
func TestArenaFind_ChunkGivenBackAndRefilled(t *testing.T) {
	var a Arena[int]
	var stale []Ref
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 6 {
		// The number of entries differs each time and is not a multiple of ChunkSize, so
		// that full and partly filled chunks are given back.
		n := 3*ChunkSize + 1 + rng.IntN(ChunkSize)
		all := fill(&a, n)
		// Free some slots more often than others. When the chunk is given back, it must
		// pass on the highest generation.
		for range 50 {
			k := rng.IntN(n)
			stale = append(stale, a.Ref(all[k]))
			a.Free(all[k])
			all[k] = a.New(0, 0)
		}
		live := refs(&a, all)
		requireStale(t, &a, stale)
		requireFound(t, &a, all, live)
		checkArena(t, &a)

		var held []*slotArrays[int]
		held = append(held, a.chunkSlots...)
		freeAll(&a, all)
		require.Equal(t, 1, a.Chunks(), "round %d: no chunk was given back", round)
		gone := 0
		for n := range held {
			if held[n] != nil && a.chunkSlots[n] == nil {
				gone++
			}
		}
		require.GreaterOrEqual(t, gone, 3)
		stale = append(stale, live...)
		requireStale(t, &a, stale)
		checkArena(t, &a)
	}
}

// nearlyUsedUp returns an arena with one entry in chunk 1, whose fresh slots start at
// generation maxGen-left.
func nearlyUsedUp(left uint64) *Arena[int] {
	a := new(Arena[int])
	a.New(0, -1)
	a.chunkStates[1].freshGen = maxGen - left
	return a
}

func TestArenaFind_SlotRetired(t *testing.T) {
	a := nearlyUsedUp(2)
	var stale []Ref
	i := a.New(0, 0)
	for life := range 3 {
		r := a.Ref(i)
		require.Equal(t, maxGen-2+uint64(life), r.gen())
		_, ok := a.Find(r)
		require.True(t, ok)
		b := a.NewBuckets(1)
		a.PushBack(b, i)
		a.Unlink(i)
		require.Equal(t, life, a.Free(i))
		stale = append(stale, r)
		requireStale(t, a, stale)
		if life < 2 {
			require.Equal(t, i, a.New(0, life+1), "life %d", life)
		}
	}
	require.Equal(t, 1, a.Len())
	for range 3 * ChunkSize {
		require.NotEqual(t, i, a.New(0, 0), "a retired slot is never used again")
	}
	requireStale(t, a, stale)
	checkArena(t, a)
}

func TestArenaFind_WholeChunkRetired(t *testing.T) {
	a := nearlyUsedUp(0)
	all := fill(a, ChunkSize-1) // fills chunk 1
	stale := refs(a, all)
	for _, r := range stale {
		require.Equal(t, uint64(maxGen), r.gen())
	}
	freeAll(a, all)
	require.Equal(t, 1, a.Len())
	requireStale(t, a, stale)
	checkArena(t, a)
	for range 2 {
		all = fill(a, 2*ChunkSize)
		requireStale(t, a, stale)
		requireFound(t, a, all, refs(a, all))
		for _, i := range all {
			require.NotEqualValues(t, 1, i>>chunkShift, "chunk 1 has no slot left")
		}
		checkArena(t, a)
		stale = append(stale, refs(a, all)...)
		freeAll(a, all)
		requireStale(t, a, stale)
		checkArena(t, a)
	}
}

// A chunk whose slots have one generation left is given back. In the next chunk with its
// number, each slot can hold one more entry.
func TestArenaFind_ChunkGivenBackAtTheLastGeneration(t *testing.T) {
	a := new(Arena[int])
	all := fill(a, 2*ChunkSize)
	k := 0
	for i := range a.chunkSlots[2].headers { // as after 2^44 lives
		a.chunkSlots[2].headers[i].setLive(maxGen - 1)
		k++
	}
	require.Equal(t, ChunkSize, k)
	stale := refs(a, all)
	freeAll(a, all) // chunk 1 becomes the spare, chunk 2 is given back
	require.Nil(t, a.chunkSlots[2])
	requireStale(t, a, stale)

	all = fill(a, 2*ChunkSize)
	require.NotNil(t, a.chunkSlots[2])
	requireStale(t, a, stale)
	live := refs(a, all)
	requireFound(t, a, all, live)
	freeAll(a, all)
	requireStale(t, a, append(stale, live...))
	require.NotNil(t, a.chunkSlots[2], "a chunk of retired slots stays, because only its slots record their generations")
	checkArena(t, a)

	all = fill(a, 2*ChunkSize)
	requireStale(t, a, append(stale, live...))
	for _, i := range all {
		require.NotEqualValues(t, 2, i>>chunkShift)
	}
	checkArena(t, a)
}

type payload struct {
	_ [64]byte
	_ *int
}

//go:noinline
func newWeak(a *Arena[*payload]) (Index, weak.Pointer[payload]) {
	p := new(payload)
	return a.New(0, p), weak.Make(p)
}

// The arena keeps no reference to a freed payload.
func TestArenaFree_LetsGoOfThePayload(t *testing.T) {
	a := new(Arena[*payload])
	b := a.NewBuckets(1)
	const n = ChunkSize + 10
	all := make([]Index, n)
	ptrs := make([]weak.Pointer[payload], n)
	for k := range n {
		all[k], ptrs[k] = newWeak(a)
		a.PushBack(b, all[k])
	}
	a.chunkSlots[1].headers[7].setLive(maxGen) // this slot will be retired, and must be cleared too
	runtime.GC()
	for k := range n {
		require.NotNil(t, ptrs[k].Value(), "entry %d is live", k)
	}
	for k := 0; k < n; k += 2 {
		a.Unlink(all[k])
		a.Free(all[k])
	}
	a.Unlink(all[7])
	a.Free(all[7])
	runtime.GC()
	for k := range n {
		if freed := k%2 == 0 || k == 7; freed != (ptrs[k].Value() == nil) {
			t.Fatalf("entry %d: freed %v, reachable %v", k, freed, ptrs[k].Value() != nil)
		}
	}
	runtime.KeepAlive(a)
}

func TestArena_KeepsOneSpareChunk(t *testing.T) {
	var a Arena[int]
	require.Zero(t, a.Chunks())
	all := fill(&a, 5*ChunkSize)
	require.Equal(t, 5, a.Chunks())
	for k, want := range []int{5, 4, 3, 2, 1} { // chunk k is empty afterwards
		freeAll(&a, all[k*ChunkSize:(k+1)*ChunkSize])
		require.Equal(t, want, a.Chunks(), "%d chunks emptied", k+1)
		checkArena(t, &a)
	}
	require.Zero(t, a.Len())

	// The entries fill the spare, so no new chunk is made and no spare remains.
	all = fill(&a, ChunkSize)
	require.Equal(t, 1, a.Chunks())
	require.Zero(t, a.spareChunk)
	freeAll(&a, all)
	require.Equal(t, 1, a.Chunks())
	require.NotZero(t, a.spareChunk)
}

// The spare is used only when no other chunk has room.
func TestArena_UsesTheSpareLast(t *testing.T) {
	var a Arena[int]
	all := fill(&a, 3*ChunkSize)
	freeAll(&a, all[ChunkSize:ChunkSize+10]) // room for 10 in the second
	freeAll(&a, all[1:ChunkSize])
	freeAll(&a, all[2*ChunkSize:3*ChunkSize-1]) // one is left in the third
	freeAll(&a, all[:1])                        // and none in the first
	spare := a.spareChunk
	require.EqualValues(t, all[0]>>chunkShift, spare)
	for range 10 + ChunkSize - 1 {
		require.NotEqual(t, spare, uint32(a.New(0, 0)>>chunkShift))
	}
	require.Equal(t, spare, a.spareChunk)
	require.Equal(t, spare, uint32(a.New(0, 0)>>chunkShift))
	require.Zero(t, a.spareChunk)
	checkArena(t, &a)
}

// Adding and removing entries at a chunk's boundary neither makes nor gives back a chunk.
func TestArena_BorderOfAChunkCostsNoMemory(t *testing.T) {
	var a Arena[int]
	fill(&a, ChunkSize)
	a.Free(a.New(0, 0))
	require.Zero(t, testing.AllocsPerRun(5, func() {
		for range 1000 {
			a.Free(a.New(0, 0))
		}
	}))
}

func TestArena_AllocatesNothingInSteadyState(t *testing.T) {
	var a Arena[int]
	b := a.NewBuckets(64)
	rng := rand.New(rand.NewPCG(2, 2))
	const n = 20 * ChunkSize
	all := make([]Index, n)
	for k := range all {
		all[k] = a.New(0, k)
		a.PushBack(b+Bucket(k%64), all[k])
	}
	// AllocsPerRun rounds the average of 5 runs down. So it ignores one allocation by the
	// runtime, but not one in each run.
	require.Zero(t, testing.AllocsPerRun(5, func() {
		for range 10_000 {
			k := rng.IntN(n)
			if k%2 == 0 {
				a.Remove(a.Ref(all[k]))
				r := a.NewIn(b, 0, k, 1, 0, 1)
				all[k], _ = a.Find(r)
				continue
			}
			i, ok := a.Find(a.Ref(all[k]))
			if !ok {
				panic("lost")
			}
			a.Unlink(i)
			a.Free(i)
			all[k] = a.New(0, k)
			a.PushBack(b+Bucket(rng.IntN(64)), all[k])
			a.MoveAll(b+Bucket(rng.IntN(32)), b+32+Bucket(rng.IntN(32)))
		}
	}))
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Memory shrinks after a peak.
func TestArena_MemoryFallsAfterAPeak(t *testing.T) {
	const n = 1_000_000
	all := make([]Index, n)
	before := heapInUse()
	a := new(Arena[int64])
	for k := range all {
		all[k] = a.New(0, int64(k))
	}
	peak := heapInUse() - before
	require.Equal(t, (n+ChunkSize-1)/ChunkSize, a.Chunks())
	require.LessOrEqual(t, peak, uint64(n*(24+8)*105/100), "24 bytes and the payload's 8 an entry, and a little")
	rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, i := range all {
		a.Free(i)
	}
	require.Equal(t, 1, a.Chunks())
	// The arena keeps the spare chunk, and two slices with 36 bytes for each chunk of the
	// peak.
	left := int64(heapInUse()) - int64(before)
	require.Less(t, left, int64(512<<10))
	t.Logf("peak %d bytes an entry, %d KiB left", peak/n, left>>10)
	runtime.KeepAlive(a)
	runtime.KeepAlive(all)
}

// After a peak, a few entries remain in many chunks. While entries come and go, the arena
// gives back most of these chunks.
func TestArena_ChurnAfterAPeakGivesChunksBack(t *testing.T) {
	const peak, steady = 1_000_000, 10_000
	const least = (steady + ChunkSize - 1) / ChunkSize
	rng := rand.New(rand.NewPCG(3, 3))
	var a Arena[int]
	all := fill(&a, peak)
	rng.Shuffle(peak, func(i, j int) { all[i], all[j] = all[j], all[i] })
	freeAll(&a, all[steady:])
	all = all[:steady]
	start := a.Chunks()
	require.Greater(t, start, 50*least, "the test must begin with chunks that are nearly empty")
	for turnover := range 12 {
		for range steady {
			k := rng.IntN(steady)
			a.Free(all[k])
			all[k] = a.New(0, 0)
		}
		t.Logf("turnover %2d: %d chunks, %d at least", turnover+1, a.Chunks(), least)
	}
	require.LessOrEqual(t, a.Chunks(), 2*least)
	checkArena(t, &a)
}

// Chunks are given back although the number of entries grows and shrinks again and again.
func TestArena_TidesDoNotPileUpChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var a Arena[int]
	var all []Index
	for range 30 {
		for range 40 * ChunkSize {
			all = append(all, a.New(0, 0))
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		freeAll(&a, all[ChunkSize:])
		all = all[:ChunkSize]
		require.LessOrEqual(t, a.Chunks(), 82) // the peak fills 41 chunks
	}
	checkArena(t, &a)
	freeAll(&a, all)
	require.Equal(t, 1, a.Chunks())
}

func TestArena_PanicsWhenItIsFull(t *testing.T) {
	var a Arena[int]
	a.New(0, 0)
	require.PanicsWithValue(t, "bucket: the arena is full: 1 entries", func() { a.appendChunks(maxChunks - 1) })
}
