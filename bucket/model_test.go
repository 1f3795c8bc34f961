package bucket

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// checkArena fails if the state of a chunk does not match its slots.
func checkArena[T comparable](tb testing.TB, a *Arena[T]) {
	tb.Helper()
	if a.chunkSlots == nil {
		return
	}
	var zero T
	inRing := make([]bool, len(a.chunkSlots))
	last := uint32(0)
	for n := a.chunkStates[0].next; n != 0; n = a.chunkStates[n].next {
		if inRing[n] {
			tb.Fatalf("the ring of chunks with room meets chunk %d twice", n)
		}
		if a.chunkStates[n].prev != last {
			tb.Fatalf("chunk %d points back to %d and not to %d", n, a.chunkStates[n].prev, last)
		}
		inRing[n] = true
		last = n
	}
	if a.chunkStates[0].prev != last {
		tb.Fatalf("the ring ends at %d, and not at %d", a.chunkStates[0].prev, last)
	}
	vacant := make([]bool, len(a.chunkSlots))
	for _, n := range a.vacantChunks {
		if vacant[n] {
			tb.Fatalf("chunk %d is vacant twice", n)
		}
		vacant[n] = true
	}
	if a.currentChunk != 0 && !inRing[a.currentChunk] {
		tb.Fatalf("the current chunk %d has no room", a.currentChunk)
	}
	live, held := 0, 0
	empty := uint32(0)
	for n := uint32(1); int(n) < len(a.chunkSlots); n++ {
		c := &a.chunkStates[n]
		switch {
		case vacant[n] != (a.chunkSlots[n] == nil):
			tb.Fatalf("chunk %d: vacant %v, in memory %v", n, vacant[n], a.chunkSlots[n] != nil)
		case vacant[n]:
			if inRing[n] || c.usedCount != 0 || c.freshGen == 0 {
				tb.Fatalf("vacant chunk %d: in the ring %v, %+v", n, inRing[n], *c)
			}
			continue
		case c.freshGen == 0: // only sentinels
			if inRing[n] || *c != (chunkState{}) {
				tb.Fatalf("chunk %d of buckets: in the ring %v, %+v", n, inRing[n], *c)
			}
			continue
		}
		held++
		if inRing[n] != (c.usedCount < ChunkSize) {
			tb.Fatalf("chunk %d: in the ring %v, %+v", n, inRing[n], *c)
		}
		var free [ChunkSize]bool
		frees := 0
		for p := c.firstFreePlus1; p != 0; p = uint16(a.chunkSlots[n].links[p-1].next) {
			if p > c.firstFreshPos || free[p-1] {
				tb.Fatalf("chunk %d: slot %d cannot be free", n, p-1)
			}
			free[p-1] = true
			frees++
		}
		retired := 0 // retired slots and sentinels
		for p := range uint16(ChunkSize) {
			s, l := &a.chunkSlots[n].headers[p], &a.chunkSlots[n].links[p]
			switch {
			case p >= c.firstFreshPos:
				if *s != (header{}) || *l != (link{}) {
					tb.Fatalf("chunk %d: fresh slot %d was touched: %+v %+v", n, p, *s, *l)
				}
			case s.gen() == 0:
				retired++
			}
			if (p >= c.firstFreshPos || s.gen() == 0 || free[p]) && a.chunkSlots[n].values[p] != zero {
				tb.Fatalf("chunk %d: slot %d is not live and keeps its payload", n, p)
			}
		}
		if int(c.usedCount) != int(c.firstFreshPos)-frees {
			tb.Fatalf("chunk %d: %d used, but %d fresh and %d freed", n, c.usedCount, c.firstFreshPos, frees)
		}
		live += int(c.usedCount) - retired
		if c.usedCount == 0 {
			if empty != 0 {
				tb.Fatalf("both chunk %d and chunk %d are empty", empty, n)
			}
			empty = n
		}
	}
	if empty != a.spareChunk {
		tb.Fatalf("chunk %d is empty, the spare is %d", empty, a.spareChunk)
	}
	if held != a.Chunks() {
		tb.Fatalf("%d chunks, and Chunks is %d", held, a.Chunks())
	}
	if live != a.Len() {
		tb.Fatalf("%d live slots, and Len is %d", live, a.Len())
	}
}

// seed returns the seed in TICKLESS_SEED, or a random one.
func seed(tb testing.TB) uint64 {
	s := rand.Uint64()
	if env := os.Getenv("TICKLESS_SEED"); env != "" {
		var err error
		if s, err = strconv.ParseUint(env, 10, 64); err != nil {
			tb.Fatalf("TICKLESS_SEED: %v", err)
		}
	}
	tb.Logf("TICKLESS_SEED=%d", s)
	return s
}

// model has an arena, and the expected contents of the arena in plain slices.
type model struct {
	tb  testing.TB
	rng *rand.Rand
	a   Arena[int]

	buckets []Bucket
	lists   [][]int // payloads, by bucket
	loose   []int   // payloads of entries in no bucket
	entries map[int]modelEntry
	stale   []Ref
	next    int // payload

	retired, givenBack, remade, moved, mixed, released int
	nearlyUsedUp                                       bool
}

type modelEntry struct {
	index    Index
	ref      Ref
	deadline int64
	tag      uint8
}

func (m *model) someBucket() int { return m.rng.IntN(len(m.buckets)) }

func (m *model) add() {
	m.next++
	e := modelEntry{deadline: m.rng.Int64(), tag: uint8(m.rng.IntN(MaxTag + 1))}
	vacant := len(m.a.vacantChunks)
	direct := m.rng.IntN(2) == 0
	if direct {
		b := m.someBucket()
		place := uint32(m.rng.IntN(MaxPlace + 1))
		grain := uint(m.rng.IntN(MaxGrain + 1))
		e.ref = m.a.NewIn(m.buckets[b], e.deadline, m.next, e.tag, grain, place)
		e.index, _ = m.a.Find(e.ref)
		if m.a.Place(e.index) != place || m.a.Grain(e.index) != grain {
			m.tb.Fatalf("entry %d was made with place %d and grain %d, and has %d and %d", e.index,
				place, grain, m.a.Place(e.index), m.a.Grain(e.index))
		}
		m.lists[b] = append(m.lists[b], m.next)
		m.check(b)
	} else {
		e.tag = 0
		e.index = m.a.New(e.deadline, m.next)
		e.ref = m.a.Ref(e.index)
		m.loose = append(m.loose, m.next)
	}
	if len(m.a.vacantChunks) < vacant {
		m.remade++
	}
	m.entries[m.next] = e
	if !direct && m.rng.IntN(8) > 0 {
		m.push()
	}
}

// push moves an entry that is in no bucket into a bucket.
func (m *model) push() {
	if len(m.loose) == 0 {
		return
	}
	k := m.rng.IntN(len(m.loose))
	v := m.loose[k]
	m.loose = slices.Delete(m.loose, k, k+1)
	b := m.someBucket()
	m.a.PushBack(m.buckets[b], m.entries[v].index)
	m.lists[b] = append(m.lists[b], v)
	m.check(b)
}

// takeFrom removes a random payload from the model's list of a bucket that is not empty.
func (m *model) takeFrom() (b, v int, ok bool) {
	b = m.someBucket()
	for k := 0; len(m.lists[b]) == 0; k++ {
		if k == len(m.lists) {
			return 0, 0, false
		}
		b = (b + 1) % len(m.lists)
	}
	k := m.rng.IntN(len(m.lists[b]))
	v = m.lists[b][k]
	m.lists[b] = slices.Delete(m.lists[b], k, k+1)
	return b, v, true
}

func (m *model) unlink() {
	if b, v, ok := m.takeFrom(); ok {
		m.a.Unlink(m.entries[v].index)
		m.loose = append(m.loose, v)
		m.check(b)
	}
}

func (m *model) free() {
	chunks := m.a.Chunks()
	var v int
	if k := len(m.loose); k > 0 && m.rng.IntN(4) == 0 {
		k = m.rng.IntN(k)
		v = m.loose[k]
		m.loose = slices.Delete(m.loose, k, k+1)
		if got := m.a.Free(m.entries[v].index); got != v {
			m.tb.Fatalf("Free of %d returned %d", v, got)
		}
	} else {
		var b int
		var ok bool
		if b, v, ok = m.takeFrom(); !ok {
			return
		}
		if got, ok := m.a.Remove(m.entries[v].ref); !ok || got != v {
			m.tb.Fatalf("Remove of %d returned %d, %v", v, got, ok)
		}
		m.check(b)
	}
	if m.a.Chunks() < chunks {
		m.givenBack++
	}
	e := m.entries[v]
	if e.ref.gen() == maxGen {
		m.retired++
	}
	if _, ok := m.a.Find(e.ref); ok {
		m.tb.Fatalf("%d is found after Free", v)
	}
	if _, ok := m.a.Remove(e.ref); ok {
		m.tb.Fatalf("%d is removed after Free", v)
	}
	delete(m.entries, v)
	m.stale = append(m.stale, e.ref)
}

func (m *model) moveAll() {
	dst, src := m.someBucket(), m.someBucket()
	if dst == src {
		return
	}
	m.a.MoveAll(m.buckets[dst], m.buckets[src])
	m.lists[dst] = append(m.lists[dst], m.lists[src]...)
	m.lists[src] = nil
	m.moved++
	m.check(dst)
	m.check(src)
}

func (m *model) newBuckets() {
	k := 1 + m.rng.IntN(300)
	chunks := len(m.a.chunkStates)
	b := m.a.NewBuckets(k)
	if len(m.a.chunkStates) == chunks && len(m.entries) > 0 {
		m.mixed++
	}
	for j := range k {
		m.buckets = append(m.buckets, b+Bucket(j))
		m.lists = append(m.lists, nil)
		m.check(len(m.buckets) - 1)
	}
}

// release calls Release on an empty arena.
func (m *model) release() {
	ok := m.a.Release()
	if ok == m.nearlyUsedUp {
		m.tb.Fatalf("Release of an empty arena: %v, with generations nearly used up: %v", ok, m.nearlyUsedUp)
	}
	if !ok {
		return
	}
	m.released++
	if m.a.Chunks() > 0 || m.a.chunkSlots != nil {
		m.tb.Fatal("Release has kept memory")
	}
	m.buckets, m.lists = nil, nil
	m.newBuckets()
	m.checkAll()
}

func (m *model) check(b int) {
	m.tb.Helper()
	if got := contents(m.tb, &m.a, m.buckets[b]); !slices.Equal(got, m.lists[b]) {
		m.tb.Fatalf("bucket %d holds %v, want %v", m.buckets[b], got, m.lists[b])
	}
}

func (m *model) checkAll() {
	m.tb.Helper()
	for b := range m.buckets {
		m.check(b)
	}
	for v, e := range m.entries {
		if i, ok := m.a.Find(e.ref); !ok || i != e.index {
			m.tb.Fatalf("%d is not found", v)
		}
		if m.a.Value(e.index) != v || m.a.Deadline(e.index) != e.deadline || m.a.Tag(e.index) != e.tag {
			m.tb.Fatalf("entry %d: %d, %d, %d; want %d, %d, %d", e.index,
				m.a.Value(e.index), m.a.Deadline(e.index), m.a.Tag(e.index), v, e.deadline, e.tag)
		}
	}
	for _, r := range m.stale {
		if i, ok := m.a.Find(r); ok {
			m.tb.Fatalf("a stale ref of generation %d finds entry %d", r.gen(), i)
		}
		if _, ok := m.a.Remove(r); ok {
			m.tb.Fatalf("a stale ref of generation %d removes an entry", r.gen())
		}
	}
	if m.a.Len() != len(m.entries) {
		m.tb.Fatalf("Len is %d, want %d", m.a.Len(), len(m.entries))
	}
	checkArena(m.tb, &m.a)
}

// The test applies random operations to an arena and to plain slices, and compares them.
// TICKLESS_MODEL is the number of operations, TICKLESS_SEED the seed.
func TestArena_Model(t *testing.T) {
	steps := 300_000
	if env := os.Getenv("TICKLESS_MODEL"); env != "" {
		var err error
		if steps, err = strconv.Atoi(env); err != nil {
			t.Fatalf("TICKLESS_MODEL: %v", err)
		}
	}
	s := seed(t)
	var givenBack, remade, mixed int
	for run, left := range []uint64{maxGen - 1, 3, 0} {
		m := &model{tb: t, rng: rand.New(rand.NewPCG(s, uint64(run))), entries: map[int]modelEntry{}}
		m.newBuckets()
		m.add()
		m.checkAll()
		m.a.chunkStates[m.entries[m.next].index>>chunkShift].freshGen = maxGen - left
		m.nearlyUsedUp = left <= 3
		growing := true
		for step := range steps / 3 {
			// The number of entries goes up and down, so that chunks fill
			// and empty.
			switch n := len(m.entries); {
			case n > 4*ChunkSize:
				growing = false
			case n == 0:
				growing = true
				if m.rng.IntN(2) == 0 {
					m.release()
				}
			case m.a.Release():
				t.Fatal("Release of an arena with entries")
			}
			up, down := 20, 80
			if growing {
				up, down = down, up
			}
			switch p := m.rng.IntN(2 * (up + down)); {
			case p < up:
				m.add()
			case p < up+down:
				m.free()
			case p < up+down+20:
				m.push()
			case p < up+down+30:
				m.unlink()
			case p < up+down+33:
				m.moveAll()
			case p == up+down+34 && len(m.buckets) < ChunkSize/2 && m.rng.IntN(10) == 0:
				m.newBuckets()
			}
			if step%250 == 0 {
				m.checkAll()
			}
			if len(m.stale) > 4*ChunkSize {
				m.stale = m.stale[ChunkSize:]
			}
		}
		m.checkAll()
		for len(m.entries) > 0 {
			m.free()
		}
		m.checkAll()
		m.release()
		t.Logf("generations left %d: %d chunks given back, %d numbers reused, %d moves, %d slots retired, %d times buckets among entries, %d releases",
			left, m.givenBack, m.remade, m.moved, m.retired, m.mixed, m.released)
		if m.moved == 0 || (m.retired == 0) != (left > 3) || (m.released == 0) != (left <= 3) {
			t.Error("not every kind of event happened in the run")
		}
		givenBack += m.givenBack
		remade += m.remade
		mixed += m.mixed
	}
	if givenBack == 0 || remade == 0 || mixed == 0 {
		t.Error("not every kind of event happened in the runs")
	}
}
