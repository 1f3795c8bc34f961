package delayqueue

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A Queue is a delay queue: an element comes out when its deadline has passed, the
// earliest first. The zero Queue is empty and uses the system's clock. [New] makes a
// queue with options. A Queue must not be copied.
//
// A Queue needs no Close: the garbage collector frees a queue that nothing refers to.
type Queue[T any] struct {
	clock clock.Clock
	epoch time.Time // moments are nanoseconds since epoch

	// Lock order: a caller's lock, then mu, then the clock's lock. The clock is the only
	// user code that runs under mu.
	mu sync.Mutex

	// Guarded by mu from here.
	elements elements[T]
	lastSeq  uint64 // the number of the last Offer

	// See taker.go.
	sleepingTakers list.List   // the takers that sleep, in order of arrival
	hasAwakeTaker  bool        // a taker has been woken and has not locked mu yet
	alarm          clock.Alarm // nil until first used
	alarmAt        int64       // the moment that alarm is set for, or never
}

// A Ticket identifies one element of one queue. It is comparable and keeps nothing alive.
// The zero Ticket identifies no element.
type Ticket struct {
	seq  uint64
	slot uint32 // where the element was offered to
}

// An Option configures a queue made by [New].
type Option interface{ apply(*config) }

type config struct {
	clock clock.Clock
	epoch time.Time // zero: the time when the queue is made
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithClock sets the queue's clock. Without this option, or if c is nil, it is
// [clock.System]. The queue calls c and its alarms with its own lock held, so they must
// not call the queue.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) {
		if c != nil {
			cfg.clock = c
		}
	})
}

// WithEpoch sets the queue's epoch, from which OfferAt, PollAt and Head count
// nanoseconds. t must be a reading of the queue's clock. The default is the time when the
// queue is made or, for a zero Queue, first used.
func WithEpoch(t time.Time) Option {
	return option(func(cfg *config) { cfg.epoch = t })
}

// New returns an empty queue.
func New[T any](opts ...Option) *Queue[T] {
	cfg := config{clock: clock.System()}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("delayqueue: New: option %d is nil", i+1))
		}
		o.apply(&cfg)
	}
	q := new(Queue[T])
	q.init(cfg)
	return q
}

func (q *Queue[T]) init(c config) {
	q.clock, q.epoch = c.clock, c.epoch
	if q.epoch.IsZero() {
		q.epoch = c.clock.Now()
	}
	q.elements.init()
	q.alarmAt = never
}

// lockAndInit locks the queue, and initializes a zero queue.
func (q *Queue[T]) lockAndInit() {
	q.mu.Lock()
	if q.clock == nil {
		q.init(config{clock: clock.System()})
	}
}

// now returns the clock's time in nanoseconds since the epoch.
func (q *Queue[T]) now() int64 { return int64(q.clock.Now().Sub(q.epoch)) }

// timeOf returns the time at the given moment.
func (q *Queue[T]) timeOf(moment int64) time.Time { return q.epoch.Add(time.Duration(moment)) }

// momentOf returns the moment of a deadline: nanoseconds since the epoch.
//
// A deadline without a monotonic reading is a wall time, and the wall clock may have been
// set since the epoch. So momentOf converts such a deadline into a delay from now, as
// time.Until does.
func (q *Queue[T]) momentOf(deadline time.Time) int64 {
	d := int64(deadline.Sub(q.epoch)) // saturates
	if d == never || bubble.HasMonotonic(deadline) || !bubble.HasMonotonic(q.epoch) {
		return d
	}
	now := q.clock.Now()
	return saturatingAdd(int64(now.Sub(q.epoch)), int64(deadline.Sub(now)))
}

// saturatingAdd returns now+d, or never if the sum overflows.
func saturatingAdd(now, d int64) int64 {
	if sum := now + d; d < 0 || sum >= 0 {
		return sum
	}
	return never
}

// Offer adds v, which comes out when deadline has passed. If deadline has already passed,
// v is due immediately. Offer never blocks.
//
// isFirst is true if v is now the first element. Then an event loop that sleeps until a
// deadline from Peek must call Peek again. Goroutines in Take wake by themselves.
func (q *Queue[T]) Offer(v T, deadline time.Time) (ticket Ticket, isFirst bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.offerLocked(v, q.momentOf(deadline))
}

// OfferAfter is like Offer, with a deadline d from now by the queue's clock. If d is zero
// or less, v is due immediately.
func (q *Queue[T]) OfferAfter(v T, d time.Duration) (ticket Ticket, isFirst bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.offerLocked(v, saturatingAdd(q.now(), int64(d)))
}

// OfferAt is like Offer, with a deadline in nanoseconds since the queue's epoch: see
// [WithEpoch].
func (q *Queue[T]) OfferAt(v T, at int64) (ticket Ticket, isFirst bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.offerLocked(v, at)
}

func (q *Queue[T]) offerLocked(v T, dueAt int64) (Ticket, bool) {
	q.lastSeq++
	slot := q.elements.push(v, dueAt, q.lastSeq)
	first, _ := q.elements.first()
	isFirst := first.slot == slot
	if isFirst {
		q.wakeOrSetAlarmLocked() // the alarm may be set for a later moment
	}
	return Ticket{q.lastSeq, slot}, isFirst
}

// Poll takes the first element if it is due. It never blocks, and reports false if no
// element is due.
func (q *Queue[T]) Poll() (v T, ok bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.pollLocked(q.now())
}

// PollAt is like Poll, for a caller that has read the clock, and takes up to len(dst)
// elements that are due. n is how many it has put into dst. next is the deadline of the
// first element that remains, due or not, or [math.MaxInt64] if none remains. now and next
// are in nanoseconds since the queue's epoch.
func (q *Queue[T]) PollAt(now int64, dst []T) (n int, next int64) {
	q.lockAndInit()
	defer q.mu.Unlock()
	for n < len(dst) {
		v, ok := q.pollLocked(now)
		if !ok {
			break
		}
		dst[n] = v
		n++
	}
	first, _ := q.elements.first()
	return n, first.dueAt
}

// pollLocked is Poll with mu held. The alarm can stay as it is: taking an element never
// makes the first deadline earlier.
func (q *Queue[T]) pollLocked(now int64) (v T, ok bool) {
	k, ok := q.elements.first()
	if !ok || !isDue(k.dueAt, now) {
		return v, false
	}
	return q.elements.pop(), true
}

// Peek returns the first element, due or not, and its deadline. It reports false if the
// queue is empty.
func (q *Queue[T]) Peek() (v T, deadline time.Time, ok bool) {
	v, _, at, ok := q.Head()
	if ok {
		deadline = q.timeOf(at)
	}
	return v, deadline, ok
}

// Head returns the first element, due or not, with its ticket and its deadline, in
// nanoseconds since the queue's epoch. It reports false if the queue is empty.
func (q *Queue[T]) Head() (v T, ticket Ticket, at int64, ok bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	k, ok := q.elements.first()
	if !ok {
		return v, ticket, k.dueAt, false
	}
	return q.elements.slots[k.slot].value, q.elements.ticket(k.slot), k.dueAt, true
}

// Len returns the number of elements, due or not.
func (q *Queue[T]) Len() int {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.elements.live
}

// Remove removes the ticket's element, due or not, and returns it. It reports false if
// the element has already left the queue, or if the ticket is zero.
func (q *Queue[T]) Remove(ticket Ticket) (v T, ok bool) {
	q.lockAndInit()
	defer q.mu.Unlock()
	return q.elements.remove(ticket)
}

// Drain takes all elements, due or not, and returns them in the order of their deadlines.
// It returns nil if the queue is empty. Goroutines that are blocked in Take stay blocked.
func (q *Queue[T]) Drain() []T {
	q.lockAndInit()
	if q.elements.live == 0 {
		q.mu.Unlock()
		return nil
	}
	drained := q.elements
	q.elements.init()
	q.mu.Unlock()

	// Sort without the lock, because sorting may take long.
	drained.newHeap(drained.liveKeys()) // one that compares by the slots in drained
	values := make([]T, 0, drained.live)
	for drained.live > 0 {
		values = append(values, drained.pop())
	}
	return values
}
