package idle

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// A Monitor watches things and evicts those that have gone silent. Each thing has its own
// timeout. Make a Monitor with [New], and end it with [Monitor.Close] or
// [Monitor.Shutdown]. Any goroutine may call its methods, and so may callbacks.
//
// Use a Monitor only on the side of a testing/synctest bubble where it was made: inside
// or outside. On the other side, Watch and the first Close or Shutdown panic.
type Monitor[T any] struct{ core }

// core is the part of a Monitor that does not depend on T.
type core struct {
	// New sets these fields.

	tick time.Duration
	// slack is how late an eviction may be, as a share of the entry's timeout.
	slack float64
	momentClock
	scheduler *timer.Scheduler
	// pool runs the callbacks.
	pool callbackPool
	// callback calls the user's function.
	callback func(e *entry, since time.Time)
	// asks is true if callback asks the func of WithOnIdle first. If ignoresTouches is
	// true, a touch while that func runs does not prevent the eviction.
	asks, ignoresTouches bool
	// delivered returns when the peer of a connection took the last bytes, or 0 if that is
	// unknown. The caller holds the stripe's lock.
	delivered func(e *entry, now Moment) Moment

	// resumedAt is the Moment at which the process went on after it was suspended: see
	// entryRing.notePause.
	resumedAt atomic.Int64

	// closed is set before the Scheduler is closed. If closed is set, a check hands the
	// entry back instead of evicting it.
	closed  atomic.Bool
	stripes []stripe // each has a lock and a part of the entries
	// handBackMu makes a second handBackAll wait until the first has moved all entries to
	// leftover. Lock handBackMu before a stripe.
	handBackMu sync.Mutex

	// leftover holds the entries that were watched at Close, until TakeLeftover returns
	// them. Lock a stripe before leftover.
	leftover struct {
		sync.Mutex
		entries []*entry
	}
}

type callbackPool interface {
	executor.Executor
	Shutdown(context.Context) error
}

// New returns a Monitor that calls evict once for each thing that is not touched for its
// timeout. evict gets the thing and the time of its last activity. It may block, and may
// call any method. New panics if evict is nil.
func New[T any](evict func(v T, since time.Time), opts ...Option) *Monitor[T] {
	if evict == nil {
		panic("idle: New: the func must not be nil")
	}
	c := newConfig()
	for i, o := range opts {
		mustNotBeNil("New", i, o)
		o.apply(&c)
	}
	m := &Monitor[T]{}
	m.init(&c)
	m.callback = func(e *entry, since time.Time) { evict(entryOf[T](e).value, since) }
	if onIdle := onIdleOf[T]("New", &c); onIdle != nil {
		m.asks = true
		m.callback = func(e *entry, since time.Time) {
			v, isIdle := entryOf[T](e).value, true
			defer func() {
				if m.decide(e, since, isIdle) {
					evict(v, since)
				}
			}()
			isIdle = onIdle(v, since)
		}
	}
	return m
}

func (c *core) init(cfg *config) {
	c.tick, c.slack = cfg.tick, cfg.slack
	c.momentClock = newMomentClock(cfg.clock)
	c.resumedAt.Store(math.MinInt64 / 2) // never
	c.delivered = func(*entry, Moment) Moment { return 0 }
	c.scheduler = cfg.newScheduler()
	c.pool = cfg.newPool()
	c.stripes = make([]stripe, cfg.numStripes())
	for i := range c.stripes {
		c.stripes[i].core, c.stripes[i].rings = c, map[ringKey]*entryRing{}
	}
}

// submitCallback runs the callback for an evicted entry, in the pool. The caller holds no
// lock.
func (c *core) submitCallback(e *entry, last Moment) {
	// Submit cannot fail: the pool is unbounded, and no entry is evicted after the pool
	// is shut down.
	_ = c.pool.Submit(func() { c.callback(e, c.timeOf(last)) })
}

// decide ends the hold of an entry whose func of WithOnIdle has returned isIdle, and
// reports whether to call the callback. since is the entry's last activity before that.
func (c *core) decide(e *entry, since time.Time, isIdle bool) (evict bool) {
	st := e.stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	st.releaseLocked(e)
	if !isIdle {
		e.touch()
		return false
	}
	for decided := false; !decided; {
		w := e.stateAndTime.Load()
		wasTouched := !c.timeOf(unpackMoment(w)).Equal(since) || st.holds[e] > 0
		if w&stateMask != live || wasTouched && !c.ignoresTouches {
			return false // the entry was stopped or handed back, or touched or held
		}
		decided = e.stateAndTime.CompareAndSwap(w, w|evicted)
	}
	st.removeFromRingLocked(e)
	st.stats.Evicted++
	return true
}

// entryOf returns the Entry that has e as its first field.
func entryOf[T any](e *entry) *Entry[T] { return (*Entry[T])(unsafe.Pointer(e)) }

// Watch starts watching v, and counts as its first activity. If v is not touched for
// timeout, it is evicted. Each call of Watch makes an independent entry.
//
// After Close, Watch returns [ErrClosed]. Watch panics if timeout is not positive.
func (m *Monitor[T]) Watch(v T, timeout time.Duration) (*Entry[T], error) {
	m.mustNotBeZero()
	checkTimeout("Watch", timeout)
	e := &Entry[T]{value: v}
	if err := m.watch(&e.entry, timeout); err != nil {
		return nil, err
	}
	return e, nil
}

func (c *core) watch(e *entry, timeout time.Duration) error {
	// Choose a stripe at random. To take turns, goroutines would need a shared counter.
	st := &c.stripes[rand.IntN(len(c.stripes))]
	now := c.now()
	c.mustKnowTime(now)
	e.stripe = st
	e.stateAndTime.Store(packLive(now))
	st.mu.Lock()
	defer st.mu.Unlock()
	e.timeout.Store(timeout)
	if st.scheduleCheckLocked(e, now, timeout, false) != nil {
		st.stats.Rejected++
		return ErrClosed
	}
	st.stats.Watched++
	return nil
}

// mustKnowTime panics if the time is unknown: a timer that is started across a bubble's
// border would never fire.
func (c *core) mustKnowTime(now Moment) {
	if now == unknownMoment && !c.closed.Load() {
		panic("idle: a Monitor or Conns that was made outside a testing/synctest bubble is used inside one," +
			" or the other way round: make it where it is used")
	}
}

func (m *Monitor[T]) mustNotBeZero() {
	if m.scheduler == nil {
		panic("idle: a Monitor that was not made by New")
	}
}

// Now returns the time of the Monitor's clock, for [Entry.TouchAt].
func (m *Monitor[T]) Now() Moment {
	m.mustNotBeZero()
	return m.now()
}

// Time converts a Moment to a time.Time.
func (m *Monitor[T]) Time(at Moment) time.Time {
	m.mustNotBeZero()
	return m.timeOf(at)
}

// Len returns how many things are watched.
func (m *Monitor[T]) Len() int { return m.Stats().Watching }

// Stats returns the Monitor's counts.
func (m *Monitor[T]) Stats() Stats {
	m.mustNotBeZero()
	var sum Stats
	for i := range m.stripes {
		st := &m.stripes[i]
		st.mu.Lock()
		sum.addCounts(&st.stats)
		st.mu.Unlock()
	}
	return sum
}

// Close stops watching and returns nil. [Monitor.TakeLeftover] then returns the entries
// that were still watched. Close does not wait for callbacks of earlier evictions. A
// callback may call Close. Closing again does nothing.
func (m *Monitor[T]) Close() error {
	m.mustNotBeZero()
	m.handBackAll()
	return nil
}

// Shutdown does what Close does, and waits until all callbacks have returned. If ctx ends
// first, Shutdown returns the error of ctx. A callback that calls Shutdown waits for
// itself until ctx ends.
func (m *Monitor[T]) Shutdown(ctx context.Context) error {
	m.mustNotBeZero()
	m.handBackAll()
	if err := m.scheduler.Shutdown(ctx); err != nil {
		return err
	}
	// No more callbacks can be submitted to the pool.
	return m.pool.Shutdown(ctx)
}

// TakeLeftover returns the entries that were watched when the Monitor was closed. It
// returns each entry once, in no particular order. Call it after Shutdown: after Close
// alone, entries that are being checked may still be missing.
func (m *Monitor[T]) TakeLeftover() iter.Seq[*Entry[T]] {
	m.mustNotBeZero()
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

// addLeftover adds an entry that TakeLeftover will return.
func (c *core) addLeftover(e *entry) {
	c.leftover.Lock()
	c.leftover.entries = append(c.leftover.entries, e)
	c.leftover.Unlock()
}

// handBackAll closes the Scheduler and moves all watched entries to leftover.
func (c *core) handBackAll() {
	c.mustKnowTime(c.now())
	c.closed.Store(true)
	c.handBackMu.Lock()
	defer c.handBackMu.Unlock()
	c.scheduler.Close()
	for i := range c.stripes {
		st := &c.stripes[i]
		st.mu.Lock()
		for _, r := range st.rings {
			for r.next != &r.links {
				e := (*entry)(unsafe.Pointer(r.next))
				st.removeFromRingLocked(e)
				st.handBackLocked(e)
			}
		}
		st.mu.Unlock()
	}
}
