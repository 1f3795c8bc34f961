package timingwheel

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tickless/tickless/bucket"
)

// checkWheel checks the wheel's invariants:
//
//   - Each entry is in exactly one list: its bucket or a due list.
//   - A bucket that is not queued is empty.
//   - The expiration of a queued bucket lies in its slot, or before it if the bucket is
//     large. The clock has not passed it.
//   - nextExpiration is the earliest expiration.
func checkWheel[T any](tb testing.TB, w *Wheel[T]) {
	tb.Helper()
	var seen []uint64 // a bit for each slot of the arena
	entries := 0
	list := func(b bucket.Bucket, f func(i bucket.Index)) {
		for i, ok := w.arena.Front(b); ok; i, ok = w.arena.Next(b, i) {
			for int(i>>6) >= len(seen) {
				seen = append(seen, make([]uint64, 1+len(seen))...)
			}
			if seen[i>>6]&(1<<(i&63)) != 0 {
				tb.Fatalf("entry %d is in two lists", i)
			}
			seen[i>>6] |= 1 << (i & 63)
			entries++
			f(i)
		}
	}
	for n := range w.levels {
		list(w.levels[n].dueList, func(i bucket.Index) {
			if level := int(w.arena.Place(i) >> w.slotBits); level != n {
				tb.Fatalf("an entry of level %d waits to be drained at level %d", level, n)
			}
		})
	}
	next := int64(math.MaxInt64)
	for n := range w.levels {
		l := &w.levels[n]
		s := uint(n) * w.slotBits
		for word, bits := range l.queuedBits {
			for bit := uint32(0); bits != 0; bit, bits = bit+1, bits>>1 {
				if bits&1 == 0 {
					continue
				}
				slot := uint32(word)<<6 + bit
				if slot > w.slotMask {
					tb.Fatalf("level %d has no slot %d", n, slot)
				}
				b := l.firstBucket + bucket.Bucket(slot)
				e := w.arena.Expiration(b)
				at := e // in the slot
				if w.arena.Load(b) == largeBucketLoad && uint32(e>>s)&w.slotMask != slot {
					at += w.leadOf(1 << s)
				}
				if e < w.clockTick || uint32(at>>s)&w.slotMask != slot || at>>s-w.clockTick>>s > int64(w.slotMask) {
					tb.Fatalf("level %d, slot %d: the expiration is %d, the clock %d", n, slot, e, w.clockTick)
				}
				next = min(next, e)
				list(b, func(i bucket.Index) {
					if t := w.tickOf(i); t < e {
						tb.Fatalf("level %d, slot %d: an entry of tick %d, but the bucket expires at %d", n, slot, t, e)
					}
					if w.bucketOf(i) != b {
						tb.Fatalf("level %d, slot %d: an entry whose place is level %d, slot %d", n, slot,
							w.arena.Place(i)>>w.slotBits, w.arena.Place(i)&w.slotMask)
					}
				})
			}
		}
	}
	if entries%16 == 0 { // the slowest part of this function
		checkScan(tb, w)
	}
	if entries != w.Len() {
		tb.Fatalf("%d entries in queued buckets and the list being drained, but %d in all", entries, w.Len())
	}
	if w.nextExpiration != next {
		tb.Fatalf("next is %d, want %d", w.nextExpiration, next)
	}
	hint, ok := w.Next()
	switch {
	case w.isDraining():
		if !ok || hint != w.Clock() {
			tb.Fatalf("Next in a drain = %d, %v, the clock is %d", hint, ok, w.Clock())
		}
	case hint != w.converter.timeOfTick(next) || ok != (hint != math.MaxInt64):
		tb.Fatalf("Next = %d, %v, want %d", hint, ok, w.converter.timeOfTick(next))
	}
}

// source provides a model's choices.
type source interface {
	intn(n int) int // 0 <= intn(n) < n
	int63() int64
}

type randSource struct{ *rand.Rand }

func (s randSource) intn(n int) int { return s.IntN(n) }
func (s randSource) int63() int64   { return s.Int64() }

// byteSource takes choices from a fuzzer's bytes, and zeros after their end.
type byteSource struct{ data []byte }

func (s *byteSource) next() uint64 {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return uint64(b)
}

func (s *byteSource) intn(n int) int {
	v := s.next()
	for m := 256; m < n; m <<= 8 {
		v = v<<8 | s.next()
	}
	return int(v % uint64(n))
}

func (s *byteSource) int63() int64 {
	var v uint64
	for range 8 {
		v = v<<8 | s.next()
	}
	return int64(v >> 1)
}

// coverage counts events. Each of them must happen for a run to be meaningful.
type coverage struct {
	events map[string]int
	levels map[int][]int // size: entries placed, by level
}

func newCoverage() *coverage {
	return &coverage{events: map[string]int{}, levels: map[int][]int{}}
}

func (c *coverage) hit(event string) { c.events[event]++ }

// maxEntries bounds the model's memory. A step adds some hundreds of entries at most.
const maxEntries = 1 << 16

// A wheelModel has a wheel, and the expected contents of the wheel in a plain slice.
type wheelModel struct {
	tb    testing.TB
	src   source
	w     *Wheel[int] // the payload is the entry's number in entries
	queue *queueModel // nil: the wheel is driven by Advance
	tick  int64
	size  int
	cov   *coverage

	now     int64
	entries []modelEntry
	live    []int // numbers of live entries
	stale   []ID

	settled int64 // all entries due at this time have been handed out
	clock   int64 // the wheel's clock at the last check
	last    int64 // the tick of the entry that was handed out last
	// overlapped is true if a bucket was expired before the previous bucket was drained
	// completely. Then ticks may come in any order.
	overlapped bool
}

type modelEntry struct {
	id       ID
	deadline int64
	tick     int64 // the tick at which the entry is due
	tag      uint8
	pos      int // index in live, or -1
}

func newModel(tb testing.TB, src source, tick int64, size int, start int64, queue bool, cov *coverage) *wheelModel {
	m := &wheelModel{tb: tb, src: src, tick: tick, size: size, cov: cov, now: start, settled: start}
	var opts []Option
	if queue {
		m.queue = &queueModel{now: start, size: uint32(size)}
		opts = append(opts, WithQueue(m.queue.offer))
	}
	var err error
	if m.w, err = New[int](tick, size, start, opts...); err != nil {
		tb.Fatal(err)
	}
	m.clock = m.w.clockTick
	return m
}

// ceil returns the tick of a deadline, computed by a division.
func (m *wheelModel) ceil(deadline int64) int64 {
	if deadline <= 0 {
		return 0
	}
	t := deadline / m.tick
	if deadline%m.tick != 0 {
		t++
	}
	return t
}

// tickOf returns the tick of a deadline with slack: the first tick in the window that is
// a multiple of the largest possible step. See stepByGrain in ticks.go.
func (m *wheelModel) tickOf(deadline, slack int64) int64 {
	first := m.ceil(deadline)
	if deadline <= 0 || slack <= 0 {
		return first
	}
	last := uint64(satAdd(deadline, slack) / m.tick)
	p := uint64(1) << 20
	for least := int64(3); least <= 3<<9; least *= 2 {
		if windowTicks := (satAdd(deadline, slack) - deadline) / m.tick; windowTicks >= least && windowTicks < least/3*4 {
			p = 3 << 9
		}
	}
	for ; p > 0; p >>= 1 {
		if t := (uint64(first) + p - 1) / p * p; t <= last {
			return int64(t)
		}
	}
	return first
}

// slack chooses a slack: none, little, or much.
func (m *wheelModel) slack() int64 {
	switch m.src.intn(6) {
	case 0:
		return m.bits(63)
	case 1:
		return satMul(int64(m.src.intn(2*m.size)), m.tick)
	case 2:
		return m.src.int63() % (2 * min(m.tick, 1<<60))
	case 3:
		return -1
	default:
		return 0
	}
}

// due reports whether an entry of tick t must have been handed out by time now.
func (m *wheelModel) due(t, now int64) bool {
	if m.queue != nil && t > math.MaxInt64/m.tick {
		return now == math.MaxInt64 // the time of a tick saturates here
	}
	return t <= now/m.tick
}

func satAdd(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func satMul(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// bits returns a number of up to n random bits. All lengths are equally likely.
func (m *wheelModel) bits(n int) int64 { return m.src.int63() >> (63 - m.src.intn(n+1)) }

// deadline chooses a deadline of an interesting sort.
func (m *wheelModel) deadline() int64 {
	if i, ok := m.firstDue(); ok && m.src.intn(4) == 0 {
		return m.nextBeginOf(i)
	}
	off := m.src.int63() % m.tick
	span := int64(1) // the span of a random level, in ticks
	for range m.src.intn(63/int(m.w.slotBits) + 1) {
		span = satMul(span, int64(m.size))
	}
	near := int64(m.src.intn(5) - 2)
	switch m.src.intn(12) {
	case 0, 1, 2: // within a few ticks
		return satAdd(m.now, satMul(int64(m.src.intn(4)), m.tick)+off)
	case 3, 4: // within a turn of the lowest level
		return satAdd(m.now, satMul(int64(m.src.intn(m.size)), m.tick)+off)
	case 5: // a level's full span from the clock
		return satMul(satAdd(m.w.clockTick, span)+min(near, 0), m.tick)
	case 6: // at the span's next border
		return satMul(satAdd(m.w.clockTick&^(span-1), span)+min(near, 0), m.tick)
	case 7, 8, 9: // anywhere
		return satAdd(m.now, m.bits(63))
	case 10:
		return math.MaxInt64 - int64(m.src.intn(2))*m.bits(20)
	default: // passed, or due within this tick
		switch m.src.intn(4) {
		case 0:
			return m.now
		case 1:
			return m.now - m.now%m.tick
		case 2:
			return m.src.int63() % (m.now/2 + 1)
		default:
			return math.MinInt64 + m.src.int63()
		}
	}
}

// nextBeginOf returns the next time, after the clock's slot, at which the slot of entry
// i's bucket begins.
func (m *wheelModel) nextBeginOf(i bucket.Index) int64 {
	p := m.w.arena.Place(i)
	bits := uint(p>>m.w.slotBits) * m.w.slotBits
	at, mask := m.w.clockTick>>bits, int64(m.w.slotMask)
	next := satAdd(at, 1+(int64(p)-at-1)&mask)
	if next > math.MaxInt64>>bits {
		return math.MaxInt64
	}
	return satMul(next<<bits, m.tick)
}

func (m *wheelModel) placed(i bucket.Index) {
	// Without Advance the clock may lag, so Add may accept a deadline that is already
	// due.
	if t := m.w.tickOf(i); m.queue != nil && m.due(t, m.settled) {
		m.settled = satMul(t, m.tick) - 1
		m.cov.hit("due entry taken")
	}
	n := m.w.arena.Place(i) >> m.w.slotBits
	levels := m.cov.levels[m.size]
	if levels == nil {
		levels = make([]int, 62/m.w.slotBits+1)
		m.cov.levels[m.size] = levels
	}
	levels[n]++
}

func (m *wheelModel) add(deadline int64) {
	tag := uint8(m.src.intn(bucket.MaxTag + 1))
	slack := m.slack()
	var id ID
	var ok bool
	if slack == 0 {
		id, ok = m.w.AddTagged(deadline, 0, len(m.entries), tag)
	} else {
		id, ok = m.w.AddTagged(deadline, slack, len(m.entries), tag)
	}
	tick := m.tickOf(deadline, slack)
	if slack > m.tick && deadline > 0 && m.ceil(deadline) < tick {
		m.cov.hit("add that waits for others")
		if tick > satAdd(deadline, slack)/m.tick {
			m.tb.Fatalf("tick %d is beyond the window of %d and %d", tick, deadline, slack)
		}
	}
	if want := tick > m.w.clockTick; ok != want {
		m.tb.Fatalf("Add(%d) = %v at the clock %d", deadline, ok, m.w.clockTick)
	}
	if !ok {
		m.cov.hit("add that is due")
		if id != (ID{}) {
			m.tb.Fatalf("Add(%d) refuses, and returns an ID", deadline)
		}
		return
	}
	i, _ := m.w.arena.Find(id)
	m.placed(i)
	if deadline == math.MaxInt64 {
		m.cov.hit("add for ever")
	}
	if m.w.arena.Expiration(m.w.bucketOf(i)) > math.MaxInt64/m.tick {
		m.cov.hit("tick beyond the range of times")
	}
	if j, ok := m.firstDue(); ok {
		m.cov.hit("add in a drain")
		if m.w.bucketOf(i) == m.w.bucketOf(j) {
			m.cov.hit("add in a drain, to the bucket being drained")
		}
	}
	m.entries = append(m.entries, modelEntry{id, deadline, tick, tag, len(m.live)})
	m.live = append(m.live, len(m.entries)-1)
}

// drop removes an entry from the model.
func (m *wheelModel) drop(v int) {
	e := &m.entries[v]
	last := m.live[len(m.live)-1]
	m.live[e.pos] = last
	m.entries[last].pos = e.pos
	m.live = m.live[:len(m.live)-1]
	e.pos = -1
	if len(m.stale) < 100 {
		m.stale = append(m.stale, e.id)
	} else {
		m.stale[m.src.intn(100)] = e.id
	}
}

func (m *wheelModel) someLive() (int, bool) {
	if len(m.live) == 0 {
		return 0, false
	}
	return m.live[m.src.intn(len(m.live))], true
}

// firstDue returns the entry that is drained next, if there is one.
func (m *wheelModel) firstDue() (bucket.Index, bool) {
	level, ok := m.w.Draining()
	if !ok {
		return 0, false
	}
	return m.w.arena.Front(m.w.levels[level].dueList)
}

// inDrain reports whether entry i is in a list being drained.
func (m *wheelModel) inDrain(i bucket.Index) bool {
	for n := range m.w.levels {
		due := m.w.levels[n].dueList
		for j, ok := m.w.arena.Front(due); ok; j, ok = m.w.arena.Next(due, j) {
			if i == j {
				return true
			}
		}
	}
	return false
}

func (m *wheelModel) remove() {
	v, ok := m.someLive()
	if !ok {
		return
	}
	e := m.entries[v]
	if i, _ := m.w.arena.Find(e.id); m.inDrain(i) {
		m.cov.hit("remove in a drain")
	}
	if got, ok := m.w.Remove(e.id); !ok || got != v {
		m.tb.Fatalf("Remove = %d, %v, want %d", got, ok, v)
	}
	m.drop(v)
}

func (m *wheelModel) move() {
	v, ok := m.someLive()
	if !ok {
		return
	}
	e := &m.entries[v]
	i, _ := m.w.arena.Find(e.id)
	deadline := m.deadline()
	slack := m.slack()
	t := m.tickOf(deadline, slack)
	drain := m.inDrain(i)
	b := m.w.bucketOf(i)
	lazy := t >= m.w.arena.Expiration(b)
	clock := m.w.clockTick
	move := func(id ID, deadline int64) bool { return m.w.MoveWithin(id, deadline, slack) }
	if slack == 0 {
		move = m.w.Move
	}
	if got, want := move(e.id, deadline), t > clock; got != want {
		m.tb.Fatalf("Move to %d = %v at the clock %d", deadline, got, clock)
	} else if !got {
		m.cov.hit("move to what is due")
		return
	}
	if drain {
		m.cov.hit("move in a drain")
	} else if lazy {
		m.cov.hit("lazy move")
		if deadline < e.deadline {
			m.cov.hit("lazy move to an earlier deadline")
		}
	} else {
		m.cov.hit("relinking move")
	}
	if m.inDrain(i) != (drain && lazy) || lazy && m.w.bucketOf(i) != b {
		m.tb.Fatalf("a move to %d: want in place %v, in the drain before %v and after %v", deadline, lazy, drain, m.inDrain(i))
	}
	m.placed(i)
	e.deadline, e.tick = deadline, t
}

func (m *wheelModel) useStale() {
	if len(m.stale) == 0 {
		return
	}
	id := m.stale[m.src.intn(len(m.stale))]
	if m.w.Contains(id) || m.w.Move(id, m.deadline()) {
		m.tb.Fatal("a stale ID finds an entry")
	}
	if _, ok := m.w.Remove(id); ok {
		m.tb.Fatal("a stale ID removes an entry")
	}
	if _, ok := m.w.Tag(id); ok {
		m.tb.Fatal("a stale ID has a tag")
	}
	if _, ok := m.w.Deadline(id); ok {
		m.tb.Fatal("a stale ID has a deadline")
	}
	m.cov.hit("stale ID")
}

// pass advances the time.
func (m *wheelModel) pass() {
	switch m.src.intn(16) {
	case 0, 1, 2, 3, 4:
		m.now = satAdd(m.now, m.src.int63()%m.tick)
	case 5, 6, 7, 8:
		m.now = satAdd(m.now, satMul(int64(m.src.intn(5)), m.tick))
	case 9, 10:
		m.now = satAdd(m.now, satMul(int64(m.src.intn(2*m.size)), m.tick))
	case 11, 12, 13:
		if next, ok := m.w.Next(); ok && m.src.intn(3) > 0 {
			m.now = max(m.now, next-int64(m.src.intn(2)))
		}
	case 14:
		m.now = satAdd(m.now, m.bits(45))
		m.cov.hit("idle spell")
	default:
		if m.src.intn(16) == 0 {
			m.now = satAdd(m.now, m.bits(63))
		}
	}
}

func (m *wheelModel) observe() {
	before := m.w.clockTick
	queued, draining := m.w.nextExpiration, m.w.isDraining()
	m.w.Observe(m.now)
	switch t := m.now / m.tick; {
	case m.w.clockTick == before:
		if !draining && t < queued && t-before > int64(max(1, m.size/8)) {
			m.tb.Fatalf("the clock stays at %d at tick %d, and the next bucket is due at %d", before, t, queued)
		}
		if t > before {
			m.cov.hit("observe that must not move the clock")
		}
	case m.w.clockTick != t || t >= queued || draining:
		m.tb.Fatalf("Observe moves the clock from %d to %d, the next bucket is due at %d, in a drain %v", before, m.w.clockTick, queued, draining)
	default:
		m.cov.hit("observe that moves the clock")
	}
}

// handedOut checks the entries that were handed out and removes them from the model.
func (m *wheelModel) handedOut(out []Expired[int]) {
	for _, x := range out {
		e := m.entries[x.Value]
		if e.pos < 0 {
			m.tb.Fatalf("entry %d comes out, but it was not in the wheel", x.Value)
		}
		if x.Deadline != e.deadline || x.Tag != e.tag {
			m.tb.Fatalf("entry %d comes out as %+v, want %+v", x.Value, x, e)
		}
		t := e.tick
		if due := satMul(t, m.tick); x.Due != e.deadline && x.Due != due || t != m.ceil(e.deadline) && x.Due != due {
			m.tb.Fatalf("entry %d of tick %d and deadline %d was due at %d", x.Value, t, e.deadline, x.Due)
		}
		if e.deadline > m.now || t > m.w.clockTick || !m.due(t, m.now) {
			m.tb.Fatalf("entry %d is early: %d at %d", x.Value, e.deadline, m.now)
		}
		if m.due(t, m.settled) {
			m.tb.Fatalf("entry %d is late: its deadline is %d, and all entries until %d have come out", x.Value, e.deadline, m.settled)
		}
		if t < m.last && !m.overlapped {
			m.tb.Fatalf("tick %d comes after tick %d", t, m.last)
		}
		m.last = max(m.last, t)
		if m.w.Contains(e.id) {
			m.tb.Fatalf("entry %d came out, and is still in the wheel", x.Value)
		}
		m.drop(x.Value)
		m.cov.hit("handed out")
	}
}

// room returns a slice for the entries that the wheel hands out, mostly a small one.
func (m *wheelModel) room() []Expired[int] {
	if m.src.intn(3) == 0 {
		return make([]Expired[int], 300)
	}
	return make([]Expired[int], 1+m.src.intn(4))
}

// work hands out due entries: all of them, or only one batch.
func (m *wheelModel) work(everything bool) {
	chunks := m.w.Chunks()
	cascaded := m.w.Cascaded()
	out := m.room()
	n, more := 0, false
	for {
		before := m.w.Cascaded()
		if m.queue == nil {
			n, more = m.w.Advance(m.now, out)
		} else {
			n, more = m.poll(out)
		}
		if n+int(m.w.Cascaded()-before) > len(out) {
			m.tb.Fatalf("a batch of %d entries, with room for %d", n+int(m.w.Cascaded()-before), len(out))
		}
		if n+int(m.w.Cascaded()-before) == 0 {
			m.cov.hit("empty batch")
		}
		m.handedOut(out[:n])
		if !more {
			break
		}
		m.cov.hit("unfinished batch")
		if !everything {
			break
		}
	}
	if !more {
		m.settled = m.now
		if t := m.now / m.tick; m.queue == nil && m.w.clockTick != max(m.clock, t) {
			m.tb.Fatalf("all entries until tick %d have come out, and the clock is at %d", t, m.w.clockTick)
		}
		if next, ok := m.w.Next(); ok && m.queue == nil && m.w.nextExpiration <= m.w.clockTick {
			m.tb.Fatalf("all entries until %d have come out, and Next is %d", m.now, next)
		}
	}
	m.cov.events["cascade"] += int(m.w.Cascaded() - cascaded)
	if m.w.Chunks() < chunks {
		m.cov.hit("chunk given back")
	}
}

// poll does one step of a poller: it expires a bucket or drains a batch.
func (m *wheelModel) poll(out []Expired[int]) (n int, more bool) {
	q := m.queue
	q.now = m.now
	draining := m.w.isDraining()
	if !draining || m.src.intn(4) == 0 {
		if x, ok := q.pop(); ok {
			if m.overlapped = draining; draining {
				m.cov.hit("bucket expired in a drain")
			}
			if m.w.arena.Empty(x.b) {
				m.cov.hit("empty bucket expired")
			}
			m.w.Expire(x.b, x.expiration)
			// A byteSource returns only zeros after its data. If zero added an entry, the
			// loop would never end.
			if i, ok := m.firstDue(); ok && draining && m.src.intn(4) != 0 {
				m.add(m.nextBeginOf(i))
			}
			return 0, true
		}
	}
	level, _ := m.w.Draining()
	above := -1
	for up := level + 1; up < len(m.w.levels); up++ {
		if due := m.w.levels[up].dueList; !m.w.arena.Empty(due) {
			i, _ := m.w.arena.Front(due)
			above = int(i)
			m.cov.hit("two levels in a drain")
			break
		}
	}
	n, more = m.w.Drain(out)
	if now, ok := m.w.Draining(); ok && above >= 0 && now == level && !m.inDrain(bucket.Index(above)) {
		m.tb.Fatalf("an entry of a higher level went before those of level %d", level)
	}
	return n, more || len(q.heap) > 0 && q.heap[0].expiration <= q.now
}

// burst adds many entries with deadlines at even distances.
func (m *wheelModel) burst() {
	if len(m.live) > 3*bucket.ChunkSize {
		return
	}
	stride := m.bits(40) + 1
	first := m.bits(30)
	for k := range int64(bucket.ChunkSize + m.src.intn(2*bucket.ChunkSize)) {
		m.add(satAdd(m.now, satAdd(first, satMul(k, stride))))
	}
}

// purge removes almost all entries.
func (m *wheelModel) purge() {
	chunks := m.w.Chunks()
	for left := m.src.intn(30); len(m.live) > left; {
		v := m.live[(len(m.live)-1)*m.src.intn(8)/8]
		if got, ok := m.w.Remove(m.entries[v].id); !ok || got != v {
			m.tb.Fatalf("Remove = %d, %v, want %d", got, ok, v)
		}
		m.drop(v)
	}
	if m.w.Chunks() < chunks {
		m.cov.hit("chunk given back")
	}
}

// discard takes a bucket out of the queue if it is empty.
func (m *wheelModel) discard() {
	if m.queue == nil || len(m.queue.heap) == 0 {
		return
	}
	k := 0
	if m.src.intn(2) == 0 {
		k = m.src.intn(len(m.queue.heap))
	}
	b := m.queue.heap[k].b
	empty := m.w.arena.Empty(b)
	if got := m.w.Discard(b); got != empty {
		m.tb.Fatalf("Discard = %v of a bucket that is empty: %v", got, empty)
	}
	if empty {
		heap.Remove(&m.queue.heap, k)
		delete(m.queue.set, b)
		m.cov.hit("bucket discarded")
	}
}

// step does one operation and checks all invariants.
func (m *wheelModel) step() {
	switch op := m.src.intn(246); {
	case op < 90:
		if m.src.intn(2) == 0 {
			m.observe()
		}
		m.add(m.deadline())
	case op < 115:
		m.remove()
	case op < 150:
		m.move()
	case op < 155:
		m.useStale()
	case op < 165:
		m.observe()
	case op < 200:
		m.pass()
		m.work(m.src.intn(3) > 0)
	case op < 210:
		m.pass()
	case op < 235:
		m.work(m.src.intn(3) == 0)
	case op < 236:
		m.burst()
	case op < 240:
		m.discard()
	case op < 245:
		if len(m.live) > 2*bucket.ChunkSize {
			m.purge()
		}
	default:
		m.each()
	}
	m.check()
}

func (m *wheelModel) each() {
	n := 0
	seen := make([]bool, len(m.entries))
	m.w.Each(func(x Entry[int]) {
		e := m.entries[x.Value]
		if seen[x.Value] || e.pos < 0 || x.Deadline != e.deadline || x.Tag != e.tag {
			m.tb.Fatalf("Each shows %+v, want %+v; seen before: %v", x, e, seen[x.Value])
		}
		seen[x.Value] = true
		n++
	})
	if n != len(m.live) {
		m.tb.Fatalf("Each shows %d of %d entries", n, len(m.live))
	}
}

func (m *wheelModel) check() {
	m.tb.Helper()
	w := m.w
	checkWheel(m.tb, w)
	if w.Len() != len(m.live) {
		m.tb.Fatalf("Len is %d, want %d", w.Len(), len(m.live))
	}
	for _, v := range m.live {
		e := &m.entries[v]
		i, ok := w.arena.Find(e.id)
		if tag, _ := w.Tag(e.id); tag != e.tag {
			m.tb.Fatalf("entry %d has tag %d, want %d", v, tag, e.tag)
		}
		if !ok || w.arena.Value(i) != v || w.arena.Tag(i) != e.tag || w.arena.Deadline(i) != e.deadline {
			m.tb.Fatalf("entry %d, %+v, differs from the entry in the wheel", v, *e)
		}
		if i, _ := w.arena.Find(e.id); w.tickOf(i) != e.tick {
			m.tb.Fatalf("entry %d is due at tick %d, want %d", v, w.tickOf(i), e.tick)
		}
		if m.due(e.tick, m.settled) {
			m.tb.Fatalf("entry %d of %d did not come out at %d", v, e.deadline, m.settled)
		}
	}
	if w.clockTick < m.clock || w.clockTick > m.now/m.tick && (m.queue == nil || m.now != math.MaxInt64) {
		m.tb.Fatalf("the clock is %d, it was %d, and the time is %d", w.clockTick, m.clock, m.now)
	}
	m.clock = w.clockTick
	if q := m.queue; q != nil {
		if q.badReoffer {
			m.tb.Fatal("a bucket was offered again that should not be")
		}
		m.cov.events["bucket offered again"] += q.reoffers
		q.reoffers = 0
		n := 0
		for k := range w.levels {
			l := &w.levels[k]
			for word, b := range l.queuedBits {
				for slot := uint32(word) << 6; b != 0; slot, b = slot+1, b>>1 {
					if b&1 == 0 {
						continue
					}
					n++
					b := l.firstBucket + bucket.Bucket(slot)
					if e, ok := q.set[b]; !ok || e != w.converter.timeOfTick(w.arena.Expiration(b)) {
						m.tb.Fatalf("bucket %d expires at %d, the queue has %d, %v", b, w.arena.Expiration(b), e, ok)
					}
				}
			}
		}
		if n != len(q.set) || n != len(q.heap) {
			m.tb.Fatalf("%d buckets are queued, %d in the queue", n, len(q.heap))
		}
	}
	if len(m.entries) > maxEntries {
		m.tb.Fatal("the run is too long")
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

// startOf chooses the time at which a model's wheel begins.
func startOf(src source, kind int) int64 {
	switch kind {
	case 0: // near 0
		return int64(src.intn(3)) * (src.int63() >> 50)
	case 1: // near the limit
		return math.MaxInt64 - src.int63()>>(1+src.intn(62))
	default:
		return src.int63() >> src.intn(63)
	}
}

// The test applies random operations to a wheel and to a slice, and compares them.
// TICKLESS_MODEL is the number of operations, TICKLESS_SEED the seed.
func TestWheel_Model(t *testing.T) {
	total := 40_000
	if env := os.Getenv("TICKLESS_MODEL"); env != "" {
		var err error
		if total, err = strconv.Atoi(env); err != nil {
			t.Fatalf("TICKLESS_MODEL: %v", err)
		}
	}
	type config struct {
		tick  int64
		size  int
		start int
		queue bool
	}
	var configs []config
	for _, tick := range []int64{1, 1e6, 100e6} { // 1 ns, 1 ms, 100 ms
		for _, size := range []int{2, 8, 256} {
			for start := range 3 {
				configs = append(configs, config{tick, size, start, false}, config{tick, size, start, true})
			}
		}
	}
	configs = append(configs, config{1, MaxSize, 0, false}, config{1, MaxSize, 2, true})

	const episode = 300 // operations on one wheel
	s := seed(t)
	cov := newCoverage()
	where := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(where)
		}
	})
	for n := 0; n*episode < total || n < len(configs); n++ {
		c := configs[n%len(configs)]
		where = fmt.Sprintf("in episode %d: %+v", n, c)
		src := randSource{rand.New(rand.NewPCG(s, uint64(n)))}
		m := newModel(t, src, c.tick, c.size, startOf(src, c.start), c.queue, cov)
		for range episode {
			m.step()
		}
	}

	t.Log(cov.events)
	for _, event := range []string{
		"add that is due", "add for ever", "tick beyond the range of times",
		"add in a drain", "add in a drain, to the bucket being drained",
		"add that waits for others", "bucket offered again",
		"remove in a drain", "move in a drain", "lazy move", "lazy move to an earlier deadline",
		"relinking move", "move to what is due", "stale ID", "idle spell",
		"observe that moves the clock", "observe that must not move the clock",
		"handed out", "cascade", "unfinished batch", "empty batch", "empty bucket expired",
		"bucket expired in a drain", "two levels in a drain", "due entry taken", "bucket discarded", "chunk given back",
	} {
		if cov.events[event] == 0 {
			t.Errorf("this never happened: %s", event)
		}
	}
	for _, size := range []int{2, 8, 256, MaxSize} {
		t.Log("entries by level, size", size, cov.levels[size])
		unused := 0
		for _, entries := range cov.levels[size] {
			if entries == 0 {
				unused++
			}
		}
		// If there are very many levels, chance may miss one or two.
		if cov.levels[size] == nil || unused > len(cov.levels[size])/20 {
			t.Errorf("size %d: %d levels were never used", size, unused)
		}
	}
}

// FuzzWheel does the operations of TestWheel_Model, chosen by a fuzzer's bytes.
func FuzzWheel(f *testing.F) {
	rng := rand.New(rand.NewPCG(10, 10))
	for n := range 12 {
		data := make([]byte, 200+100*n)
		for k := range data {
			data[k] = byte(rng.Uint32())
		}
		data[0] = byte(n)
		f.Add(data)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &byteSource{data[:min(len(data), 1<<11)]}
		queue := src.intn(2) == 1
		tick := []int64{1, 1e6, 100e6, 3, 1 << 62, math.MaxInt64}[src.intn(6)]
		size := []int{2, 8, 256, 64}[src.intn(4)]
		m := newModel(t, src, tick, size, startOf(src, src.intn(3)), queue, newCoverage())
		for len(src.data) > 0 && len(m.entries) < maxEntries/2 {
			m.step()
		}
	})
}
