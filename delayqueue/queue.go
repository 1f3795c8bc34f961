package delayqueue

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A Queue is a delay queue: an element comes out when its deadline has passed,
// the earliest first. The zero Queue is empty, and follows the system's clock from its
// first use on; [New] makes one with options. A Queue must not be copied.
//
// There is no Close: a context ends a Take that waits, and a queue that nobody refers
// to is garbage.
type Queue[T any] struct {
	clock     clock.Clock
	epoch     time.Time // moment 0
	monotonic bool      // epoch has a monotonic reading

	// Lock order: the callers' locks (a wheel's shard), then mu, then what
	// the clock locks. No user code but the clock runs under mu.
	mu sync.Mutex

	// Guarded by mu from here.
	//
	// order has a key for each element in slab and for some that have been
	// removed. Its head, between any two holds of mu, is alive.
	order keyHeap
	slab  slab[T]
	seq   uint64 // number of the last Offer
	skew  int64  // ns, see momentLocked

	// See taker.go.
	waiting line        // takers that sleep
	awake   bool        // a taker has been woken and has not yet had mu
	alarm   clock.Alarm // nil until first needed
	armed   int64       // moment at which alarm will ring, or never
}

// A Ticket stands for one element of one queue. It is a small comparable
// value, and keeps nothing alive. The zero Ticket stands for nothing.
type Ticket struct {
	seq  uint64 // never used again, so it needs no generation beside it
	slot int
}

// New returns an empty queue.
func New[T any](opts ...Option) *Queue[T] {
	var cfg config
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("delayqueue: New: option %d is nil", i+1))
		}
		o.apply(&cfg)
	}
	if cfg.clock == nil {
		cfg.clock = clock.System()
	}
	q := new(Queue[T])
	q.init(cfg.clock)
	return q
}

func (q *Queue[T]) init(c clock.Clock) {
	q.clock, q.epoch = c, c.Now()
	q.monotonic = bubble.Monotonic(q.epoch)
	q.order, q.slab = newKeyHeap(), newSlab[T]()
	q.armed = never
}

// lock locks the queue, and makes a zero one ready.
func (q *Queue[T]) lock() {
	q.mu.Lock()
	if q.clock == nil {
		q.init(clock.System())
	}
}

// Offer adds v, which comes out when deadline has passed. A deadline that has
// passed already, the zero [time.Time] among them, is due at once.
//
// head reports that v became the queue's first element, due strictly before all
// others: a caller that sleeps until the deadline that Peek returned has to call Peek
// again. Goroutines that are blocked in Take notice by themselves.
//
// Offer never blocks, and allocates nothing while the queue's size is steady.
func (q *Queue[T]) Offer(v T, deadline time.Time) (ticket Ticket, head bool) {
	q.lock()
	defer q.mu.Unlock()
	return q.offerLocked(v, q.momentLocked(deadline))
}

// OfferAfter is Offer with a deadline d from now, by the queue's clock. A d of
// zero or less is due at once; one beyond the queue's range never comes.
func (q *Queue[T]) OfferAfter(v T, d time.Duration) (ticket Ticket, head bool) {
	q.lock()
	defer q.mu.Unlock()
	return q.offerLocked(v, add(q.now(), int64(d)))
}

func (q *Queue[T]) offerLocked(v T, due int64) (Ticket, bool) {
	q.seq++
	k := key{due: due, seq: q.seq}
	k.slot = q.slab.put(k.seq, due, v)
	q.order.push(k)
	first, _ := q.order.head()
	head := first == k
	if head {
		q.settleLocked() // takers may be asleep until a later moment
	}
	return Ticket{seq: k.seq, slot: k.slot}, head
}

// Poll takes the first element if it is due, and never blocks. Not ok: nothing
// is due.
func (q *Queue[T]) Poll() (v T, ok bool) {
	q.lock()
	defer q.mu.Unlock()
	return q.pollLocked()
}

// pollLocked is Poll with mu held. Whatever takes elements away need not tell
// the sleeping takers: the head then only moves later, and an alarm that rings
// too early for it costs one look.
func (q *Queue[T]) pollLocked() (v T, ok bool) {
	k, ok := q.order.head()
	if !ok || !isDue(k.due, q.now()) {
		return v, false
	}
	return q.takeLocked(k.slot, k.seq)
}

// Peek returns the first element, whether due or not, and its deadline. Not
// ok: the queue is empty.
//
// The deadline is as the queue keeps it: one that was out of range, or came
// without a monotonic reading and before the wall clock was set, need not
// equal the one that was offered.
func (q *Queue[T]) Peek() (v T, deadline time.Time, ok bool) {
	q.lock()
	defer q.mu.Unlock()
	k, ok := q.order.head()
	if !ok {
		return v, deadline, false
	}
	return q.slab.get(k.slot, k.seq).v, q.timeOf(k.due), true
}

// Head returns the first element, whether due or not, and its ticket, for callers
// that may want to remove it. Not ok: the queue is empty.
func (q *Queue[T]) Head() (v T, ticket Ticket, ok bool) {
	q.lock()
	defer q.mu.Unlock()
	k, ok := q.order.head()
	if !ok {
		return v, ticket, false
	}
	return q.slab.get(k.slot, k.seq).v, Ticket{seq: k.seq, slot: k.slot}, true
}

// All ranges over the elements and their tickets, due or not, in no order, for callers
// that may want to remove some: also while they range, and while others use the queue.
// What is in the queue from the beginning to the end comes once. What others offer or
// take meanwhile may come, and may be gone by then.
func (q *Queue[T]) All() iter.Seq2[Ticket, T] {
	return func(yield func(Ticket, T) bool) {
		var some []slot[T]
		for n := 0; ; n++ {
			q.lock()
			if n >= len(q.slab.chunks) {
				q.mu.Unlock()
				return
			}
			some = append(some[:0], q.slab.chunks[n].slots...)
			q.mu.Unlock()
			for i := range some {
				if e := &some[i]; e.seq != 0 && !yield(Ticket{seq: e.seq, slot: n*chunkLen + i}, e.v) {
					return
				}
			}
		}
	}
}

// Len returns the number of elements, due or not.
func (q *Queue[T]) Len() int {
	q.lock()
	defer q.mu.Unlock()
	return q.slab.live
}

// Remove takes back the element of that ticket, due or not. Not ok: it has
// been taken already, or the ticket is the zero one.
//
// The queue lets go of the element at once, and of its place in the order
// when more than half of those places, and more than a few, are dead.
func (q *Queue[T]) Remove(ticket Ticket) (v T, ok bool) {
	q.lock()
	defer q.mu.Unlock()
	return q.takeLocked(ticket.slot, ticket.seq)
}

// fewDead is how many dead keys are always borne, so that a small queue is not
// rebuilt with every other Remove.
const fewDead = 64

// takeLocked takes the element numbered seq out of its slot, which leaves a
// dead key, and keeps dead keys from the head and below half of all.
func (q *Queue[T]) takeLocked(slot int, seq uint64) (v T, ok bool) {
	v, ok = q.slab.take(slot, seq)
	if !ok {
		return v, false
	}
	for popped := 0; ; popped++ {
		k, ok := q.order.head()
		if !ok || q.slab.get(k.slot, k.seq) != nil {
			break
		}
		if popped*bits.Len(uint(q.order.size())) > max(q.order.size(), fewDead) {
			q.rebuildLocked() // with many dead in a row that is less than to pop them all
			break
		}
		q.order.pop()
	}
	if dead := q.order.size() - q.slab.live; dead > max(q.slab.live, fewDead) {
		q.rebuildLocked()
	}
	return v, true
}

// rebuildLocked drops the dead keys.
func (q *Queue[T]) rebuildLocked() { q.order = newKeyHeap(q.slab.keys()...) }

// Drain takes all elements, due or not, and returns them in the order of their
// deadlines; nil if there are none. The queue stays usable, and goroutines
// that are blocked in Take stay so.
func (q *Queue[T]) Drain() []T {
	q.lock()
	if q.slab.live == 0 {
		q.mu.Unlock()
		return nil
	}
	s := q.slab
	q.slab = newSlab[T]()
	q.order = newKeyHeap()
	q.mu.Unlock()

	// What follows may take long, and holds up nobody.
	keys := s.keys()
	slices.SortFunc(keys, compare)
	all := make([]T, len(keys))
	for i, k := range keys {
		all[i] = s.get(k.slot, k.seq).v
	}
	return all
}
