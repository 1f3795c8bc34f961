package idle

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// A Monitor watches things, each with a timeout of its own, and evicts those that have
// gone silent. Make one with [New], and end it with [Monitor.Close] or
// [Monitor.Shutdown]. Any goroutine may call its methods, and so may callbacks.
//
// A Monitor has a [timer.Scheduler] of its own, with a coarser tick. It has no goroutine
// while nothing is due.
//
// Code in a testing/synctest bubble needs a Monitor that was made there. On the other
// side of the bubble's border, Watch panics, and so do Close and Shutdown the first time.
// All other methods work there, but do not know the time. So a touch from there counts as
// made at the Monitor's next check of the entry, and a shorter timeout set from there may
// take effect only after the old timeout.
type Monitor[T any] struct{ core }

// core is the part of a Monitor that is the same for all T.
type core struct {
	// Set by New.

	tick time.Duration
	// slack is how much later an eviction may come, as a share of its timeout.
	slack float64
	// recheck is true if an entry that is checked much too late gets a second check.
	recheck bool
	timeline
	s *timer.Scheduler
	// pool runs the callbacks.
	pool pool
	// callback calls the user's function.
	callback func(e *entry, since time.Time)

	// closed is set before the Scheduler is closed. A check that finds it set hands the
	// entry back instead of evicting it.
	closed  atomic.Bool
	stripes []stripe // each with a lock, which touches do not take
	// closing is held by shut while it moves the watched entries to leftover. So two
	// concurrent calls both return after all entries have moved. closing is locked before
	// a stripe's lock.
	closing sync.Mutex

	// leftover has the entries that were watched at Close, until TakeLeftover takes them.
	// Its lock is taken after a stripe's.
	leftover struct {
		sync.Mutex
		entries []*entry
	}
}

type pool interface {
	executor.Executor
	Shutdown(context.Context) error
}

// New returns a Monitor. When a thing has not been touched for its timeout, the Monitor
// stops watching it and calls evict once, with the thing and the time of its last
// activity, on a goroutine that the Monitor chooses. evict may block. It may call any
// method, for example Watch with the same thing. New panics if evict is nil.
func New[T any](evict func(v T, since time.Time), opts ...Option) *Monitor[T] {
	if evict == nil {
		panic("idle: New with a nil func")
	}
	c := config{tick: DefaultTick, slack: DefaultSlack, onPanic: printPanic}
	for i, o := range opts {
		notNil("New", i, o)
		o.apply(&c)
	}
	m := &Monitor[T]{}
	m.init(&c)
	m.callback = func(e *entry, since time.Time) { evict(entryOf[T](e).value, since) }
	return m
}

func (c *core) init(cfg *config) {
	c.tick, c.slack, c.recheck = cfg.tick, cfg.slack, cfg.recheck
	c.timeline = newTimeline(cfg.clock)
	c.s = cfg.scheduler()
	c.pool = cfg.pool()
	c.stripes = make([]stripe, cfg.stripes())
	for i := range c.stripes {
		c.stripes[i].core, c.stripes[i].rings = c, map[ringKey]*ring{}
	}
}

// evict runs the callback for an evicted entry. The caller holds no lock.
func (c *core) evict(e *entry, last Moment) {
	// Submit cannot fail: the pool is unbounded, and Shutdown ends it after the
	// Scheduler.
	_ = c.pool.Submit(func() { c.callback(e, c.time(last)) })
}

// entryOf returns the Entry whose first field e is.
func entryOf[T any](e *entry) *Entry[T] { return (*Entry[T])(unsafe.Pointer(e)) }

// Watch starts watching v, and counts the present moment as v's first activity. If v is
// not touched for timeout, it is evicted: never earlier, and late by at most a tick, the
// slack (see [WithSlack]) and the time to wake up. If v is watched twice, the two entries
// are independent. After Close the error is [ErrClosed]. Watch panics if timeout is not
// positive. It is O(1).
func (m *Monitor[T]) Watch(v T, timeout time.Duration) (*Entry[T], error) {
	m.mustBeMade()
	checkTimeout("Watch", timeout)
	e := &Entry[T]{value: v}
	if err := m.watch(&e.entry, timeout); err != nil {
		return nil, err
	}
	return e, nil
}

func (c *core) watch(e *entry, timeout time.Duration) error {
	// rand keeps a state for each thread, so no counter is shared.
	st := &c.stripes[rand.IntN(len(c.stripes))]
	now := c.now()
	c.mustBeHere(now)
	e.stripe = st
	e.word.Store(word(now))
	st.mu.Lock()
	defer st.mu.Unlock()
	e.timeout.Store(timeout)
	if st.insertLocked(e, now, timeout, false) != nil {
		st.n.Rejected++
		return ErrClosed
	}
	st.n.Watched++
	return nil
}

// mustBeHere panics if the time is unknown: what is started there would never end.
func (c *core) mustBeHere(now Moment) {
	if now == unknown && !c.closed.Load() {
		panic("idle: a Monitor or Conns that was made outside a testing/synctest bubble is used inside one," +
			" or the other way round: make it where it is used")
	}
}

func (m *Monitor[T]) mustBeMade() {
	if m.s == nil {
		panic("idle: a Monitor that was not made by New")
	}
}

// Now returns the time of the Monitor's clock, for [Entry.TouchAt].
func (m *Monitor[T]) Now() Moment {
	m.mustBeMade()
	return m.now()
}

// Time converts a Moment to a time.Time.
func (m *Monitor[T]) Time(at Moment) time.Time {
	m.mustBeMade()
	return m.time(at)
}

// Len returns how many things are watched.
func (m *Monitor[T]) Len() int { return m.Stats().Watching }

// Stats returns the Monitor's counts.
func (m *Monitor[T]) Stats() Stats {
	m.mustBeMade()
	var sum Stats
	for i := range m.stripes {
		st := &m.stripes[i]
		st.mu.Lock()
		sum.add(&st.n)
		st.mu.Unlock()
	}
	return sum
}

// Close ends the Monitor and returns nil. Things that it still watches will not be
// evicted: [Monitor.TakeLeftover] returns them. After Close, Watch returns [ErrClosed].
// Close does not wait for callbacks, so a callback may call it. Evictions that were
// decided before still run their callbacks. Closing again does nothing.
func (m *Monitor[T]) Close() error {
	m.mustBeMade()
	m.shut()
	return nil
}

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx ends
// first, Shutdown returns the error of ctx. When Shutdown has returned nil, no goroutine
// of the Monitor is running. A callback that calls Shutdown waits for itself, until ctx
// ends.
func (m *Monitor[T]) Shutdown(ctx context.Context) error {
	m.mustBeMade()
	m.shut()
	if err := m.s.Shutdown(ctx); err != nil {
		return err
	}
	// No more callbacks can be submitted.
	return m.pool.Shutdown(ctx)
}

// TakeLeftover returns the entries that were watched when the Monitor was closed, in no
// particular order. It returns an entry only once, and none before Close or Shutdown. If
// the Monitor is just checking an entry whose timer has fired, a later call returns that
// entry: at the latest a call after Shutdown has returned nil.
func (m *Monitor[T]) TakeLeftover() iter.Seq[*Entry[T]] {
	m.mustBeMade()
	m.leftover.Lock()
	entries := m.leftover.entries
	m.leftover.entries = nil
	m.leftover.Unlock()
	return func(yield func(*Entry[T]) bool) {
		for _, e := range entries {
			if !yield(entryOf[T](e)) {
				return
			}
		}
	}
}

// addLeftover adds an entry for TakeLeftover: one that is handed back, or one whose
// eviction was refused after the Conns had been closed.
func (c *core) addLeftover(e *entry) {
	c.leftover.Lock()
	c.leftover.entries = append(c.leftover.entries, e)
	c.leftover.Unlock()
}

// shut closes the Scheduler and moves the watched entries to leftover.
func (c *core) shut() {
	c.mustBeHere(c.now())
	c.closed.Store(true)
	c.closing.Lock()
	defer c.closing.Unlock()
	c.s.Close()
	for i := range c.stripes {
		st := &c.stripes[i]
		st.mu.Lock()
		for _, r := range st.rings {
			for r.next != &r.links {
				e := (*entry)(unsafe.Pointer(r.next))
				st.removeLocked(e)
				st.handBackLocked(e)
			}
		}
		st.mu.Unlock()
	}
}
