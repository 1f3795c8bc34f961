package timingwheel

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

// queueModel is the queue of a wheel's owner: a heap of the buckets that the wheel has
// offered.
type queueModel struct {
	now    int64
	heap   bucketHeap
	set    map[bucket.Bucket]int64 // the queued buckets' expirations
	offers int
	// reoffers counts the offers of buckets that were in the queue already. badReoffer is
	// true if such an offer was for the lowest level, or did not make the expiration
	// earlier.
	reoffers   int
	badReoffer bool
	size       uint32 // slots of a level; 0: no bucket may be offered again
}

type queued struct {
	b          bucket.Bucket
	expiration int64
}

type bucketHeap []queued

func (h bucketHeap) Len() int           { return len(h) }
func (h bucketHeap) Less(i, j int) bool { return h[i].expiration < h[j].expiration }
func (h bucketHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *bucketHeap) Push(x any)        { *h = append(*h, x.(queued)) }
func (h *bucketHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func (q *queueModel) offer(b bucket.Bucket, place uint32, expiration int64) {
	q.offers++
	if before, ok := q.set[b]; ok {
		q.reoffers++
		q.badReoffer = q.badReoffer || q.size == 0 || place < q.size || expiration >= before
		heap.Remove(&q.heap, slices.IndexFunc(q.heap, func(x queued) bool { return x.b == b }))
	}
	if q.set == nil {
		q.set = map[bucket.Bucket]int64{}
	}
	q.set[b] = expiration
	heap.Push(&q.heap, queued{b, expiration})
}

// pop takes the first bucket that is due.
func (q *queueModel) pop() (queued, bool) {
	if len(q.heap) == 0 || q.heap[0].expiration > q.now {
		return queued{}, false
	}
	x := heap.Pop(&q.heap).(queued)
	delete(q.set, x.b)
	return x, true
}

// poll expires and drains the buckets that are due at q.now, in batches.
func (q *queueModel) poll(w *Wheel[int], batch int) []Expired[int] {
	var all []Expired[int]
	out := make([]Expired[int], batch)
	for {
		for more := true; more; {
			var n int
			n, more = w.Drain(out)
			all = append(all, out[:n]...)
		}
		x, ok := q.pop()
		if !ok {
			return all
		}
		w.Expire(x.b, x.expiration)
	}
}

func mustFind(tb testing.TB, w *Wheel[int], id ID) bucket.Index {
	tb.Helper()
	i, ok := w.arena.Find(id)
	require.True(tb, ok)
	return i
}

func values(all []Expired[int]) []int {
	v := []int{}
	for _, e := range all {
		v = append(v, e.Value)
	}
	return v
}

// No entry is early, and none is late by a tick or more.
func TestWheelAdvance_RoundsUp(t *testing.T) {
	for _, c := range []struct{ tick, deadline, due int64 }{
		{1, 5, 5},
		{10, 1, 10},
		{10, 9, 10},
		{10, 10, 10},
		{10, 11, 20},
		{100, 150, 200}, // Kafka fired it at 91
		{100, 101, 200},
		{1e6, 5e6, 5e6}, // Kafka fired it at 4.1 ms
		{1e6, 5e6 + 1, 6e6},
		{3, 1e9, 1e9 + 2},
	} {
		t.Run(fmt.Sprintf("tick=%d/deadline=%d", c.tick, c.deadline), func(t *testing.T) {
			w := newWheel[int](t, c.tick, 16, 0)
			add(t, w, c.deadline, 1)
			require.Empty(t, advance(w, c.due-1))
			require.Equal(t, []int{1}, advance(w, c.due))
		})
	}
}

func TestWheelAdvance_NeedsRoom(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	require.PanicsWithValue(t, "timingwheel: Advance: dst must not be empty", func() { w.Advance(1, nil) })
}

// Ticks come in order. Within a tick, entries that moved through the same levels come
// first in, first out.
func TestWheelAdvance_Order(t *testing.T) {
	type entry struct{ tick, n int64 }
	rng := rand.New(rand.NewPCG(7, 7))
	for _, size := range []int{2, 4, 256} {
		w := newWheel[entry](t, 10, size, 0)
		count := map[int64]int64{}
		for range 3000 {
			d := 1 + rng.Int64N(5000)
			tick := (d + 9) / 10
			// All entries are added at 0, so that entries of one tick move through the
			// same levels.
			add(t, w, d, entry{tick, count[tick]})
			count[tick]++
		}
		seen := map[int64]int64{}
		last := int64(0)
		for now := int64(0); w.Len() > 0; now += rng.Int64N(300) {
			for _, e := range advance(w, now) {
				require.GreaterOrEqual(t, e.tick, last)
				require.Equal(t, seen[e.tick], e.n, "tick %d", e.tick)
				seen[e.tick]++
				last = e.tick
			}
		}
		require.Equal(t, count, seen)
	}
}

// Entries of one tick have no order if only one of them has moved down a level. Here the
// one that was added later comes first.
func TestWheelAdvance_NoOrderAcrossACascade(t *testing.T) {
	w := newWheel[string](t, 1, 4, 0)
	a := add(t, w, 5, "added at 0")
	level, _ := where(t, w, a)
	require.Equal(t, 1, level)
	require.Empty(t, advance(w, 2))
	b := add(t, w, 5, "added at 2")
	level, _ = where(t, w, b)
	require.Equal(t, 0, level)
	require.Equal(t, []string{"added at 2", "added at 0"}, advance(w, 5))
}

// The same calls give the same order.
func TestWheelAdvance_IsDeterministic(t *testing.T) {
	run := func() []int {
		rng := rand.New(rand.NewPCG(8, 8))
		w := newWheel[int](t, 3, 8, 0)
		var ids []ID
		var got []int
		for now := int64(0); now < 3000; now++ {
			id, ok := w.Add(now+rng.Int64N(1<<rng.IntN(12)), int(now))
			if ok {
				ids = append(ids, id)
			}
			if k := rng.IntN(len(ids) + 1); k < len(ids) {
				if now%2 == 0 {
					w.Remove(ids[k])
				} else {
					w.Move(ids[k], now+rng.Int64N(500))
				}
			}
			got = append(got, advance(w, now)...)
		}
		return got
	}
	require.Equal(t, run(), run())
}

// No call processes more entries than dst has room for, whether they are due or move
// down.
func TestWheelAdvance_BoundedBatches(t *testing.T) {
	const n, batch = 1000, 64
	t.Run("due", func(t *testing.T) {
		w := newWheel[int](t, 1, 256, 0)
		for k := range n {
			add(t, w, int64(1+k/300), k)
		}
		out := make([]Expired[int], batch)
		var got []int
		calls := 0
		for more := true; more; calls++ {
			var n int
			n, more = w.Advance(100, out)
			got = append(got, values(out[:n])...)
			require.Equal(t, more, w.Len() > 0)
		}
		require.Len(t, got, n)
		require.True(t, slices.IsSorted(got))
		require.Equal(t, (n+batch-1)/batch, calls)
	})
	for _, queue := range []bool{false, true} {
		t.Run(fmt.Sprintf("cascade/queue=%v", queue), func(t *testing.T) {
			var q queueModel
			var opts []Option
			if queue {
				opts = append(opts, WithQueue(q.offer))
			}
			w := newWheel[int](t, 1, 256, 0, opts...)
			for k := range n {
				add(t, w, int64(300+k%100), k)
			}
			out := make([]Expired[int], batch)
			if queue {
				q.now = 256
				b, ok := q.pop()
				require.True(t, ok)
				w.Expire(b.b, b.expiration)
			}
			calls := 0
			for more := true; more; calls++ {
				before := w.Cascaded()
				var n int
				if queue {
					n, more = w.Drain(out)
				} else {
					n, more = w.Advance(256, out)
				}
				require.Zero(t, n)
				require.LessOrEqual(t, w.Cascaded()-before, uint64(batch))
			}
			require.EqualValues(t, n, w.Cascaded())
			require.Equal(t, (n+batch-1)/batch, calls)
			require.Equal(t, n, w.Len())
		})
	}
	t.Run("no room at all", func(t *testing.T) {
		q := queueModel{now: 1}
		w := newWheel[int](t, 1, 256, 0, WithQueue(q.offer))
		add(t, w, 1, 1)
		b, _ := q.pop()
		w.Expire(b.b, b.expiration)
		n, more := w.Drain(nil)
		require.Zero(t, n)
		require.True(t, more)
	})
}

// A removed entry is never handed out, even if it is in the list being drained.
func TestWheelRemove_DuringADrain(t *testing.T) {
	for victim := range 6 {
		for _, queue := range []bool{false, true} {
			q := queueModel{now: 2}
			var opts []Option
			if queue {
				opts = append(opts, WithQueue(q.offer))
			}
			w := newWheel[int](t, 1, 4, 0, opts...)
			var ids []ID
			for k := range 6 {
				ids = append(ids, add(t, w, 2, k))
			}
			out := make([]Expired[int], 2)
			drain := func() (int, bool) { return w.Advance(2, out) }
			if queue {
				b, _ := q.pop()
				w.Expire(b.b, b.expiration)
				drain = func() (int, bool) { return w.Drain(out) }
			}
			n, more := drain()
			require.True(t, more)
			require.Equal(t, []int{0, 1}, values(out[:n]))
			next, ok := w.Next()
			require.True(t, ok)
			require.EqualValues(t, 2, next, "there is work left now")

			_, ok = w.Remove(ids[victim])
			require.Equal(t, victim >= 2, ok, "Remove must be true if and only if the entry has not come out")
			got := []int{0, 1}
			for more {
				n, more = drain()
				got = append(got, values(out[:n])...)
			}
			want := []int{0, 1, 2, 3, 4, 5}
			if victim >= 2 {
				want = slices.Delete(want, victim, victim+1)
			}
			require.Equal(t, want, got)
			require.Zero(t, w.Len())
			_, ok = w.Next()
			require.False(t, ok)
		}
	}
}

// The last entry of the list being drained may be removed. Then the drain ends.
func TestWheelRemove_EmptiesTheDrain(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	add(t, w, 2, 1)
	id := add(t, w, 2, 2)
	out := make([]Expired[int], 1)
	_, more := w.Advance(2, out)
	require.True(t, more)
	w.Remove(id)
	n, more := w.Advance(2, out)
	require.Zero(t, n)
	require.False(t, more)
	checkWheel(t, w)
}

// A bucket can be queued again while its old entries are drained. The wheel offers the
// bucket once, and does not drain the new entry.
func TestWheelAdd_DuringADrain_IntoTheBucketJustExpired(t *testing.T) {
	q := queueModel{now: 3}
	w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
	add(t, w, 2, 20)
	add(t, w, 2, 21)
	add(t, w, 3, 30)
	require.Equal(t, 2, q.offers)
	b2, _ := q.pop()
	w.Expire(b2.b, b2.expiration)
	out := make([]Expired[int], 1)
	n, more := w.Drain(out)
	require.Equal(t, []int{20}, values(out[:n]))
	require.True(t, more)
	b3, _ := q.pop()
	w.Expire(b3.b, b3.expiration)

	for k := range 3 {
		id := add(t, w, 6, 60+k)
		require.Equal(t, b2.b, w.bucketOf(mustFind(t, w, id)))
		require.Equal(t, 3, q.offers, "offered with the first, and only then")
	}
	require.False(t, q.badReoffer)
	require.Equal(t, queued{b2.b, 6}, q.heap[0])
	require.Equal(t, []int{21, 30}, values(q.poll(w, 1)), "and not the entry of 6")
	q.now = 5
	require.Empty(t, q.poll(w, 1))
	q.now = 6
	require.Equal(t, []int{60, 61, 62}, values(q.poll(w, 1)))
	require.Equal(t, 3, q.offers)
}

// RussellLuo/timingwheel issue 53. While a bucket is drained, entries that move down go
// to another list. So the drain comes to an end.
func TestWheelDrain_PlacesAgainElsewhere(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	var ids []ID
	for k := range 100 {
		ids = append(ids, add(t, w, 2, k))
	}
	out := make([]Expired[int], 10)
	for _, id := range ids {
		require.True(t, w.Move(id, 1<<40)) // all stay in the bucket of slot 2
	}
	calls := 0
	for more := true; more; calls++ {
		var n int
		n, more = w.Advance(2, out)
		require.Zero(t, n)
	}
	require.Equal(t, 10, calls)
	require.EqualValues(t, 100, w.Cascaded())
	require.Len(t, advance(w, 1<<40), 100)
}

// RussellLuo/timingwheel issue 41. All entries of equal deadlines are handed out.
func TestWheelAdvance_EqualDeadlines(t *testing.T) {
	w := newWheel[int](t, 1e6, 32, 0)
	for k := range 1000 {
		add(t, w, 3600e9, k)
	}
	require.Empty(t, advance(w, 3600e9-1))
	got := advance(w, 3600e9)
	require.Len(t, got, 1000)
	require.True(t, slices.IsSorted(got))
}

// A bucket that becomes empty stays queued. It causes at most one wake-up, and is offered
// again when it gets another entry.
func TestWheelRemove_EmptiesAQueuedBucket(t *testing.T) {
	q := queueModel{}
	w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
	for k := range 50 {
		id := add(t, w, 3, k)
		v, ok := w.Remove(id)
		require.True(t, ok)
		require.Equal(t, k, v)
		_, ok = w.Remove(id)
		require.False(t, ok, "only once")
	}
	require.Equal(t, 1, q.offers, "it was queued all the time")
	require.Zero(t, w.Len())
	next, ok := w.Next()
	require.True(t, ok)
	require.EqualValues(t, 3, next)
	checkWheel(t, w)

	q.now = 3
	require.Empty(t, q.poll(w, 8))
	_, ok = w.Next()
	require.False(t, ok)
	w.Observe(4)
	add(t, w, 7, 1) // the same bucket, one turn later
	require.Equal(t, 2, q.offers)
	q.now = 7
	require.Equal(t, []int{1}, values(q.poll(w, 8)))
}

// The wheel offers a bucket when its first entry is added, for the time of that entry. It
// offers the bucket again for an earlier entry.
func TestWithQueue_OffersWhenABucketBecomesQueued(t *testing.T) {
	q := queueModel{size: 4}
	w := newWheel[int](t, 10, 4, 0, WithQueue(q.offer))
	step := func(deadline int64, offers int, expiration int64) {
		t.Helper()
		id := add(t, w, deadline, int(deadline))
		require.Equal(t, offers, q.offers, "deadline %d", deadline)
		b := w.bucketOf(mustFind(t, w, id))
		require.Equal(t, expiration, q.set[b], "deadline %d", deadline)
		require.False(t, q.badReoffer)
	}
	step(15, 1, 20)
	step(20, 1, 20)
	step(30, 2, 30)
	step(65, 3, 70) // level 1 has 40 to 79
	step(66, 3, 70)
	step(41, 4, 50)   // due earlier
	step(170, 5, 170) // level 2
	_, ok := w.Add(0, 0)
	require.False(t, ok)
	require.Equal(t, 5, q.offers, "what is due is not offered")

	q.now = 19
	require.Empty(t, q.poll(w, 1))
	q.now = 30
	require.Equal(t, []int{15, 20, 30}, values(q.poll(w, 1)))
	require.Equal(t, 5, q.offers)
	q.now = 49
	require.Empty(t, q.poll(w, 1))
	require.Equal(t, 5, q.offers)
	q.now = 50
	require.Equal(t, []int{41}, values(q.poll(w, 1)))
	require.Equal(t, 6, q.offers, "65 and 66 went down")
	q.now = 79
	require.Equal(t, []int{65, 66}, values(q.poll(w, 1)))
	q.now = 1000
	require.Equal(t, []int{170}, values(q.poll(w, 1)))
	require.EqualValues(t, 2, w.Cascaded())
	require.Empty(t, q.heap)
	require.False(t, q.badReoffer)
}

// A due entry does not wait for entries of higher levels that move down, however many
// there are.
func TestWheelDrain_LowestLevelFirst(t *testing.T) {
	q := queueModel{size: 4}
	w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
	for k := range largeBucketLoad {
		add(t, w, 18, 1000+k) // level 2; a large bucket, which expires at 12
	}
	q.now = 12
	b, ok := q.pop()
	require.True(t, ok)
	w.Expire(b.b, b.expiration)
	out := make([]Expired[int], 10)
	n, more := w.Drain(out)
	require.Zero(t, n)
	require.True(t, more)
	level, ok := w.Draining()
	require.True(t, ok)
	require.Equal(t, 2, level)

	// 15 comes first, because it is due at level 0. The entries of 18 come later.
	add(t, w, 15, 15)
	q.now = 15
	b, _ = q.pop()
	w.Expire(b.b, b.expiration)
	level, _ = w.Draining()
	require.Zero(t, level)
	n, _ = w.Drain(out[:1])
	require.Equal(t, []int{15}, values(out[:n]))
	level, _ = w.Draining()
	require.Equal(t, 2, level)
	checkWheel(t, w)

	q.now = 18
	got := values(q.poll(w, 10))
	slices.Sort(got)
	require.Len(t, got, largeBucketLoad)
	require.Equal(t, 1000+largeBucketLoad-1, got[largeBucketLoad-1])
	_, ok = w.Draining()
	require.False(t, ok)
	checkWheel(t, w)
}

func TestWheelExpire_OfABucketThatIsNotQueued(t *testing.T) {
	q := queueModel{now: 3}
	w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
	id := add(t, w, 2, 1)
	b := w.bucketOf(mustFind(t, w, id))
	for _, other := range []bucket.Bucket{0, w.levels[0].dueList, b - 1, b + 1, b + 100, math.MaxUint32} {
		w.Expire(other, math.MaxInt64)
		require.EqualValues(t, 0, w.Clock())
		checkWheel(t, w)
	}
	w.Expire(b, 1)
	require.EqualValues(t, 0, w.Clock(), "it expires later")
	w.Expire(b, 2)
	require.EqualValues(t, 2, w.Clock())
	w.Expire(b, 2)
	checkWheel(t, w)
	out := make([]Expired[int], 4)
	n, more := w.Drain(out)
	require.Equal(t, []int{1}, values(out[:n]))
	require.False(t, more)
}

// A poller takes a bucket from its queue, and the wheel offers the bucket again. So the
// poller calls Expire twice. The second call must do nothing if the bucket is queued for
// later.
func TestWheelExpire_LeavesABucketThatIsQueuedForLater(t *testing.T) {
	q := queueModel{now: 30, size: 4}
	w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
	add(t, w, 30, 30) // level 2, in the slot of 16
	taken, ok := q.pop()
	require.True(t, ok)
	add(t, w, 29, 29)
	require.Equal(t, []queued{{taken.b, 29}}, []queued(q.heap), "it is offered again")
	w.Expire(taken.b, taken.expiration)
	out := make([]Expired[int], 9)
	n, _ := w.Drain(out)
	require.Equal(t, []int{29}, values(out[:n]))

	second, ok := q.pop()
	require.True(t, ok)
	require.Equal(t, taken.b, second.b)
	require.Equal(t, []int{30}, values(q.poll(w, 9)))
	q.now = 32
	w.Observe(q.now)
	id := add(t, w, 17+64, 81) // the same bucket, one turn later
	require.Equal(t, taken.b, w.bucketOf(mustFind(t, w, id)))
	w.Expire(second.b, second.expiration)
	require.EqualValues(t, 32, w.Clock())
	require.Empty(t, q.poll(w, 9))
	checkWheel(t, w)
	q.now = 81
	require.Equal(t, []int{81}, values(q.poll(w, 9)))
}

// A large bucket expires before its slot begins, and any other bucket when its first entry
// is due. What is too far away for the lower level goes back into the large bucket.
func TestWheel_ABucketWithManyEntriesExpiresBeforeItsSlotBegins(t *testing.T) {
	w := newWheel[int](t, 1, 256, 0)
	const slot, n, perTick = 256, 4 * largeBucketLoad, 4 * largeBucketLoad / 256
	next := func() int64 {
		at, _ := w.Next()
		return at
	}
	for k := range n {
		add(t, w, 2*slot-1-int64(k)%slot, k)
		if k < largeBucketLoad-1 {
			require.EqualValues(t, 2*slot-1-k, next())
		} else {
			require.EqualValues(t, slot-slot/4, next())
		}
	}
	require.Empty(t, advance(w, slot-slot/4))
	require.EqualValues(t, n, w.Cascaded())
	checkWheel(t, w)
	for tick := int64(slot); tick < 2*slot; tick++ {
		require.Len(t, advance(w, tick), perTick)
		checkWheel(t, w)
	}
	require.EqualValues(t, n+n/4, w.Cascaded(), "a quarter went back")
	require.Zero(t, w.Len())
}

// Discard withdraws a bucket only if removals have emptied it.
func TestWheelDiscard(t *testing.T) {
	q := queueModel{}
	w := newWheel[int](t, 10, 4, 0, WithQueue(q.offer))
	first := add(t, w, 20, 1)
	second := add(t, w, 20, 2)
	add(t, w, 70, 3) // level 1
	b := w.bucketOf(mustFind(t, w, first))
	for _, other := range []bucket.Bucket{0, w.levels[0].dueList, b + 1, math.MaxUint32} {
		require.False(t, w.Discard(other), "it is not queued")
	}
	require.False(t, w.Discard(b), "two entries")
	w.Remove(first)
	require.False(t, w.Discard(b), "one entry")
	w.Remove(second)
	require.True(t, w.Discard(b))
	require.False(t, w.Discard(b), "not queued any more")
	w.Expire(b, 20) // neither does the bucket expire, nor does the clock move
	require.EqualValues(t, 0, w.Clock())
	checkWheel(t, w)
	next, ok := w.Next()
	require.True(t, ok)
	require.EqualValues(t, 70, next)

	// Now the clock may move on. The bucket can be used for another time, and is offered
	// again.
	w.Observe(30)
	require.EqualValues(t, 30, w.Clock())
	require.Equal(t, 2, q.offers)
	require.Equal(t, b, w.bucketOf(mustFind(t, w, add(t, w, 60, 4))))
	require.Equal(t, 3, q.offers)
	require.EqualValues(t, 60, q.set[b])
	checkWheel(t, w)

	// An entry whose deadline was moved later is still in its old bucket.
	q = queueModel{}
	w = newWheel[int](t, 10, 4, 0, WithQueue(q.offer))
	id := add(t, w, 20, 1)
	w.Move(id, 1000)
	require.False(t, w.Discard(w.bucketOf(mustFind(t, w, id))))

	// After the last bucket is discarded, there is nothing to wait for.
	w.Remove(id)
	require.True(t, w.Discard(q.heap[0].b))
	_, ok = w.Next()
	require.False(t, ok)
}

// Two buckets of different levels that expire at the same time may expire in either
// order. An entry that is added between the two goes into neither.
func TestWheelExpire_TwoBucketsOfOneTime(t *testing.T) {
	for _, coarseFirst := range []bool{false, true} {
		for d := int64(5); d < 70; d++ {
			q := queueModel{size: 4}
			w := newWheel[int](t, 1, 4, 0, WithQueue(q.offer))
			add(t, w, 4, 40)
			add(t, w, 6, 60) // in the same level-1 bucket, of slot 4
			w.Observe(3)
			add(t, w, 4, 41) // level 0
			require.Len(t, q.heap, 2)
			fine, coarse := w.levels[0].firstBucket, w.levels[1].firstBucket+1
			require.Equal(t, map[bucket.Bucket]int64{fine: 4, coarse: 4}, q.set)
			q.heap, q.set = nil, nil // both buckets are taken from the queue
			first, second := fine, coarse
			if coarseFirst {
				first, second = second, first
			}
			w.Expire(first, 4)
			out := make([]Expired[int], 10)
			n, _ := w.Drain(out)
			got := values(out[:n])
			_, ok := w.Add(4, 0)
			require.False(t, ok)
			add(t, w, d, 99)
			w.Observe(1000)
			require.EqualValues(t, 4, w.Clock(), "Observe does not pass the bucket that is still queued")
			checkWheel(t, w)
			w.Expire(second, 4)
			n, more := w.Drain(out)
			require.False(t, more)
			got = append(got, values(out[:n])...)
			require.ElementsMatch(t, []int{40, 41}, got, "and not yet %d", d)
			checkWheel(t, w)
			for q.now = 5; w.Len() > 0; q.now++ {
				for _, e := range q.poll(w, 3) {
					require.Equal(t, q.now, e.Deadline)
				}
			}
		}
	}
}

// A poller takes a bucket from the queue and locks the wheel a moment later. If an
// earlier bucket is queued in between, ticks come out of order. But no entry is lost,
// early or handed out twice.
func TestWheelExpire_OvertakenByAnEarlierBucket(t *testing.T) {
	for _, size := range []int{2, 4, 8, 256} {
		rng := rand.New(rand.NewPCG(9, uint64(size)))
		q := queueModel{size: uint32(size)}
		w := newWheel[int](t, 1, size, 0, WithQueue(q.offer))
		deadlines := map[int]int64{}
		out := make([]Expired[int], 3)
		v := 0
		addAt := func(d int64) {
			if _, ok := w.Add(d, v); ok {
				deadlines[v] = d
			}
			v++
		}
		drain := func() {
			for more := true; more; {
				var n int
				n, more = w.Drain(out)
				for _, e := range out[:n] {
					d, ok := deadlines[e.Value]
					if !ok || d != e.Deadline || d > q.now {
						t.Fatalf("%+v comes out at %d; want %d, and once", e, q.now, d)
					}
					delete(deadlines, e.Value)
				}
			}
		}
		for step := range 10_000 {
			w.Observe(q.now)
			addAt(q.now + rng.Int64N(1<<rng.IntN(14)))
			q.now += rng.Int64N(1 << rng.IntN(6))
			for b, ok := q.pop(); ok; b, ok = q.pop() {
				if rng.IntN(3) == 0 { // in between
					addAt(w.clockTick + 1 + rng.Int64N(max(1, q.now-w.clockTick)))
				}
				w.Expire(b.b, b.expiration)
				drain()
			}
			if len(deadlines) != w.Len() {
				t.Fatalf("%d entries, want %d", w.Len(), len(deadlines))
			}
			if step%100 != 0 {
				continue
			}
			for v, d := range deadlines {
				if d <= q.now {
					t.Fatalf("%d is lost", v)
				}
			}
		}
		require.False(t, q.badReoffer)
	}
}
