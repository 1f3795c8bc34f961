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

// A Monitor watches things, each with a timeout of its own, and evicts those that
// have gone silent. Make one with [New], and end it with [Monitor.Close] or
// [Monitor.Shutdown]. Any goroutine may call its methods, and so may callbacks.
//
// It has a [timer.Scheduler] of its own, with a coarser tick. It has no goroutine
// while nothing is due.
//
// Code in a testing/synctest bubble needs a Monitor that was made there: Watch, Close and
// Shutdown of one that was made outside panic inside, and of one that was made inside panic
// outside before it is closed. All else works on both sides of the border. How late it is
// on the other side nobody can tell, so a touch from there counts as one of the moment when
// the Monitor next checks the entry, and a SetTimeout may evict as late as the timeout before.
type Monitor[T any] struct{ core }

// core is the part of a Monitor that is the same for all T.
type core struct {
	// Fixed by New.

	tick time.Duration
	// slack is the share of its timeout by which an eviction may come later.
	slack float64
	// patient: an entry that is checked much too late gets a second check.
	patient bool
	timeline
	s *timer.Scheduler
	// pool is where callbacks run.
	pool pool
	// callback is the user's.
	callback func(e *entry, since time.Time)

	// closed is set before the Scheduler is closed. A check that sees it hands the entry
	// back instead of evicting it.
	closed  atomic.Bool
	stripes []stripe // a lock each for everything but touches
	// shut holds closing while it moves what is watched to leftover: of two calls at the
	// same time, both return when all of it is there. It is taken before a stripe's lock.
	closing sync.Mutex

	// leftover is what was watched at Close, until TakeLeftover takes it. Its lock is taken
	// after a stripe's.
	leftover struct {
		sync.Mutex
		entries []*entry
	}
}

type pool interface {
	executor.Executor
	Shutdown(context.Context) error
}

// New makes a Monitor. When a thing was not touched for its timeout, the Monitor
// stops watching it and calls evict once, on a goroutine of its own choosing, with
// the thing and the time of its last activity. evict may block. It may call any
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
	c.tick, c.slack, c.patient = cfg.tick, cfg.slack, cfg.patient
	c.timeline = newTimeline(cfg.clock)
	c.s = cfg.scheduler()
	c.pool = cfg.pool()
	c.stripes = make([]stripe, cfg.stripes())
	for i := range c.stripes {
		c.stripes[i].core, c.stripes[i].rings = c, map[ringKey]*ring{}
	}
}

// evict runs the callback for an evicted entry. No lock is held.
func (c *core) evict(e *entry, last Moment) {
	// The pool has room without bound, and Shutdown ends it after the Scheduler.
	_ = c.pool.Submit(func() { c.callback(e, c.time(last)) })
}

// entryOf returns the Entry that an entry is part of.
func entryOf[T any](e *entry) *Entry[T] { return (*Entry[T])(unsafe.Pointer(e)) }

// Watch begins to watch v, and counts this moment as its first activity. If v is not
// touched for timeout, it is evicted: never earlier, and late by at most a tick, the
// slack (see [WithSlack]) and the time to wake up. If v is watched twice, the two
// entries are independent. The error is [ErrClosed]. Watch panics if
// timeout is not positive. It is O(1).
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
	// rand's state is each thread's own, as no counter of ours could be.
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

// mustBeHere panics where the clock reads away: what is started there would never end.
func (c *core) mustBeHere(now Moment) {
	if now == away && !c.closed.Load() {
		panic("idle: a Monitor or Conns that was made outside a testing/synctest bubble is used inside one," +
			" or the other way round: make it where it is used")
	}
}

func (m *Monitor[T]) mustBeMade() {
	if m.s == nil {
		panic("idle: a Monitor that was not made by New")
	}
}

// Now reads the Monitor's clock, for [Entry.TouchAt].
func (m *Monitor[T]) Now() Moment {
	m.mustBeMade()
	return m.now()
}

// Time returns the time at a moment.
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

// Close ends the Monitor, and returns nil. What it watched will not be evicted:
// [Monitor.TakeLeftover] has it. From now on Watch returns [ErrClosed]. Close does not wait
// for callbacks, so these may call it. Evictions that were decided before still run their
// callbacks. Closing again does nothing.
func (m *Monitor[T]) Close() error {
	m.mustBeMade()
	m.shut()
	return nil
}

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx
// ends first it returns the error of ctx. When Shutdown has returned nil, no goroutine
// of the Monitor is left. Called from inside a callback, it waits for that callback too,
// and so for ctx to end.
func (m *Monitor[T]) Shutdown(ctx context.Context) error {
	m.mustBeMade()
	m.shut()
	if err := m.s.Shutdown(ctx); err != nil {
		return err
	}
	// Nothing is submitted any more.
	return m.pool.Shutdown(ctx)
}

// TakeLeftover takes what was watched when the Monitor was closed, and returns it in no
// particular order. An entry is in the result of one call only, and before Close or
// Shutdown there is none. One whose timer has just fired, and which the Monitor is
// checking for touches, is in the result of a later call: at the latest of one after
// Shutdown has returned nil.
func (m *Monitor[T]) TakeLeftover() iter.Seq[*Entry[T]] {
	m.mustBeMade()
	m.leftover.Lock()
	left := m.leftover.entries
	m.leftover.entries = nil
	m.leftover.Unlock()
	return func(yield func(*Entry[T]) bool) {
		for _, e := range left {
			if !yield(entryOf[T](e)) {
				return
			}
		}
	}
}

// leave adds an entry to what TakeLeftover returns: one that is handed back, or one whose
// eviction a Conns has refused when it was closed already.
func (c *core) leave(e *entry) {
	c.leftover.Lock()
	c.leftover.entries = append(c.leftover.entries, e)
	c.leftover.Unlock()
}

// shut moves what is watched to leftover.
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
