package purgatory

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/latch"
	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// A Purgatory holds operations, each of which waits for a check of one of its keys or for
// its timeout. Make one with [New]. Any goroutine may call its methods, and so may
// OnComplete and OnExpiration. [Operation] says what TryComplete may call.
type Purgatory[K comparable] struct {
	// panics comes first, because there 64 bits are aligned on 32-bit machines too.
	panics atomic.Uint64

	// Set by New.

	s       *timer.Scheduler
	seed    maphash.Seed
	shards  []shard[K] // a power of two
	onPanic func(v any, stack []byte)

	// closed is set by Close before it closes the shards one by one. Close holds closing
	// until it is done, so that a second Close returns only when all operations are in
	// leftover. closing is locked before a shard's lock and an operation's.
	closed  atomic.Bool
	closing sync.Mutex
	// expiring counts the timeouts whose callbacks are running.
	expiring latch.Latch
	// leftover has the operations that waited at Close, until TakeLeftover takes them.
	leftover struct {
		sync.Mutex
		ops []Operation[K]
	}
	// snapshots recycles the slices of snapshot, of type *[]*node[K].
	snapshots sync.Pool
}

// New returns a Purgatory that uses timers of s for its timeouts. Shut the Purgatory down
// before you close s: an operation whose timer s has handed back waits without a timeout.
// New panics if s is nil.
func New[K comparable](s *timer.Scheduler, opts ...Option) *Purgatory[K] {
	if s == nil {
		panic("purgatory: New with a nil Scheduler")
	}
	c := newConfig(opts)
	p := &Purgatory[K]{
		s:       s,
		seed:    maphash.MakeSeed(),
		shards:  make([]shard[K], c.shards),
		onPanic: c.onPanic,
	}
	for i := range p.shards {
		p.shards[i].init(p)
	}
	p.snapshots.New = func() any { return new([]*node[K]) }
	return p
}

// TryCompleteElseWatch completes the operation if its condition holds. Otherwise the
// operation waits for its keys. TryCompleteElseWatch reports true if this call completed
// the operation; then OnComplete has run. If it reports false, another goroutine may have
// completed the operation before the call returns.
//
// TryComplete runs at most twice, whatever the number of keys: at the start, and after
// the operation has been put into the lists of all its keys, in case the condition became
// true in between. Then the timeout begins. A timeout of zero or less expires at once, on
// the Scheduler's executor. Repeated keys count once. Without keys the operation waits
// for its timeout or a ForceComplete.
//
// The error is [ErrClosed], or the Scheduler's if it refused the timer: [timer.ErrClosed]
// or [timer.ErrTooManyPending]. Then the operation is neither complete nor watched, and
// none of its callbacks will run. It may be added again.
//
// If the operation is already complete, TryCompleteElseWatch only runs an OnComplete that
// has not run. It panics if the operation is nil or waiting, or if a key is not equal to itself, such as NaN.
func (p *Purgatory[K]) TryCompleteElseWatch(op Operation[K], timeout time.Duration, keys ...K) (completed bool, err error) {
	p.mustBeMade()
	if op == nil {
		panic("purgatory: TryCompleteElseWatch with a nil Operation")
	}
	run, byThisCall, err := op.delayed().enter(p, op, timeout, keys)
	if run {
		op.OnComplete()
	}
	return byThisCall, err
}

// CheckAndComplete calls TryComplete of every operation that waits for key, in the order
// in which they were added, completes those that return true, and returns their number.
// When it returns, each operation that was waiting at the time of the call has been
// checked since, or another goroutine has completed or removed it.
//
// CheckAndComplete waits for a running TryComplete, so do not call it while you hold a
// lock that a TryComplete takes. It is O(n) for n operations that wait for the key.
func (p *Purgatory[K]) CheckAndComplete(key K) (completed int) {
	ns := p.snapshot(key)
	if ns == nil {
		return 0
	}
	defer p.release(ns)
	for remaining := *ns; len(remaining) > 0; {
		remaining = p.checkSome(remaining, &completed)
	}
	return completed
}

// CancelForKey removes all operations that wait for key, stops their timeouts, and
// returns them, in the order in which they were added. They no longer wait for any of
// their keys. They are not completed, and none of their callbacks runs. The caller may
// complete them with ForceComplete, or add them to a purgatory again.
func (p *Purgatory[K]) CancelForKey(key K) []Operation[K] {
	refuseInsideTryComplete() // before it removes any operation, which a panic would lose
	ns := p.snapshot(key)
	if ns == nil {
		return nil
	}
	defer p.release(ns)
	return takeAll(nil, *ns, cancelled)
}

// Len returns the number of waiting operations. It is exact while no operation is
// added, completed or removed. It is O(shards).
func (p *Purgatory[K]) Len() int { return p.Stats().Delayed }

// Watched returns the sum of the lengths of all keys' lists: an operation counts once for
// each of its keys. Watched is exact under the same condition as Len. O(shards).
func (p *Purgatory[K]) Watched() int { return p.Stats().Watched }

// Stats returns the gauges and counts. O(shards).
func (p *Purgatory[K]) Stats() Stats {
	p.mustBeMade()
	st := Stats{Panics: p.panics.Load()}
	for i := range p.shards {
		sh := &p.shards[i]
		sh.mu.Lock()
		st.add(&sh.n)
		st.Watched += sh.watched
		st.Keys += len(sh.lists)
		sh.mu.Unlock()
	}
	return st
}

// Close ends the Purgatory and returns nil. It refuses new operations. Operations that
// were waiting stop waiting, and none is completed: [Purgatory.TakeLeftover] returns
// them. Close does not wait for callbacks of expired operations, so a callback may call
// it. Closing again does nothing, except that it waits for a Close on another goroutine.
func (p *Purgatory[K]) Close() error {
	p.mustBeMade()
	refuseInsideTryComplete() // before anything changes
	// An expiry counts itself in expiring before its operation leaves any list. It holds
	// the operation's lock, which take needs too. So for every operation there are two
	// cases. Close finds it in a list, and the lock decides whether Close or the expiry
	// gets it. Or the expiry is counted before Close returns.
	p.closed.Store(true)
	p.closing.Lock()
	defer p.closing.Unlock()
	var ns []*node[K]
	for i := range p.shards {
		sh := &p.shards[i]
		sh.mu.Lock()
		sh.closed = true
		ns = sh.keyless.appendLocked(ns[:0])
		for _, l := range sh.lists {
			ns = l.appendLocked(ns)
		}
		sh.mu.Unlock()
		ops := takeAll(nil, ns, handedBack)
		p.leftover.Lock()
		p.leftover.ops = append(p.leftover.ops, ops...)
		p.leftover.Unlock()
	}
	return nil
}

// Shutdown does what Close does, and waits until the callbacks of expired operations have
// returned. If ctx ends first, Shutdown returns the error of ctx. A callback that calls
// Shutdown waits for itself, until ctx ends.
func (p *Purgatory[K]) Shutdown(ctx context.Context) error {
	p.mustBeMade()
	p.Close()
	return p.expiring.Wait(ctx)
}

// TakeLeftover returns the operations that were waiting when the Purgatory was closed, in
// no particular order. It returns an operation only once, and none before Close or
// Shutdown. The operations are not completed: the caller may complete them with
// ForceComplete, or add them to another purgatory, as after CancelForKey.
func (p *Purgatory[K]) TakeLeftover() iter.Seq[Operation[K]] {
	p.leftover.Lock()
	defer p.leftover.Unlock()
	ops := p.leftover.ops
	p.leftover.ops = nil
	return slices.Values(ops)
}

func (p *Purgatory[K]) mustBeMade() {
	if p.s == nil {
		panic("purgatory: a Purgatory that was not made by New")
	}
}

func (p *Purgatory[K]) shardOf(key K) *shard[K] {
	p.mustBeMade()
	return &p.shards[maphash.Comparable(p.seed, key)&uint64(len(p.shards)-1)]
}

// snapshot returns a copy of the key's list, to be used without the shard's lock, or nil
// if there is none.
func (p *Purgatory[K]) snapshot(key K) *[]*node[K] {
	sh := p.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l, ok := sh.lists[key]
	if !ok {
		return nil
	}
	ns := p.snapshots.Get().(*[]*node[K])
	*ns = l.appendLocked((*ns)[:0])
	return ns
}

func (p *Purgatory[K]) release(ns *[]*node[K]) {
	clear(*ns)
	p.snapshots.Put(ns)
}

func takeAll[K comparable](to []Operation[K], ns []*node[K], why outcome) []Operation[K] {
	for _, n := range ns {
		if op, ok := n.take(why); ok {
			to = append(to, op)
		}
	}
	return to
}
