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

// A Purgatory holds operations that wait for a check of one of their keys, or for a
// timeout. Make one with [New]. Any goroutine may call its methods, and so may
// OnComplete and OnExpiration.
type Purgatory[K comparable] struct {
	// panicCount is the first field, so that it is 64-bit aligned on 32-bit machines.
	panicCount atomic.Uint64

	// New sets these fields.

	s        *timer.Scheduler
	hashSeed maphash.Seed
	shards   []shard[K] // their number is a power of two
	onPanic  func(v any, stack []byte)

	// Close sets closed, and then closes the shards one by one. It holds closeMu
	// meanwhile, so that a second Close waits for the first. closeMu is locked before
	// the locks of operations and shards.
	closed  atomic.Bool
	closeMu sync.Mutex
	// runningExpirations counts the expired operations whose callbacks are running.
	runningExpirations latch.Latch
	// leftover holds the operations that waited at Close, until TakeLeftover returns
	// them.
	leftover struct {
		sync.Mutex
		ops []Operation[K]
	}
	// snapshotPool recycles the slices that takeSnapshot returns, of type *[]*node[K].
	snapshotPool sync.Pool
}

// New returns a Purgatory whose timeouts are timers of s. Shut it down before you close
// s: otherwise operations may wait without a timeout. New panics if s is nil.
func New[K comparable](s *timer.Scheduler, opts ...Option) *Purgatory[K] {
	if s == nil {
		panic("purgatory: New with a nil Scheduler")
	}
	c := newConfig(opts)
	p := &Purgatory[K]{
		s:        s,
		hashSeed: maphash.MakeSeed(),
		shards:   make([]shard[K], c.shardCount),
		onPanic:  c.onPanic,
	}
	for i := range p.shards {
		p.shards[i].init(p)
	}
	p.snapshotPool.New = func() any { return new([]*node[K]) }
	return p
}

// CompleteOrWatch adds an operation. If its condition holds, the operation is
// completed: OnComplete runs, and completed is true. Otherwise the operation waits for
// a check of one of its keys, for its timeout or for ForceComplete. completed is also
// false if another call has completed the operation.
//
// TryComplete runs before and after the operation is put into the lists of its keys.
// Then the timeout begins. A timeout of zero or less expires immediately.
//
// After an error the operation does not wait, and none of its callbacks will run. It
// may be added again. The error is [ErrClosed] or, if the Scheduler refuses the timer,
// [timer.ErrClosed] or [timer.ErrTooManyPending].
//
// A key that is given twice counts twice: in Watched, and for CheckAndComplete, which then
// calls TryComplete twice.
//
// CompleteOrWatch panics if the operation is nil or already waiting, or if a key
// is not equal to itself, such as NaN.
func (p *Purgatory[K]) CompleteOrWatch(op Operation[K], timeout time.Duration, keys ...K) (completed bool, err error) {
	p.mustBeMade()
	if op == nil {
		panic("purgatory: CompleteOrWatch with a nil Operation")
	}
	runOnComplete, byThisCall, err := op.delayed().addTo(p, op, timeout, keys)
	if runOnComplete {
		op.OnComplete()
	}
	return byThisCall, err
}

// CheckAndComplete calls TryComplete of every operation that waits for key, in the
// order in which they were added. It completes those that return true, and returns
// their number. It takes O(n) for n operations that wait for the key.
//
// CheckAndComplete waits for a running TryComplete. So do not call it while you hold a
// lock that a TryComplete takes.
func (p *Purgatory[K]) CheckAndComplete(key K) (completed int) {
	ns := p.takeSnapshot(key)
	if ns == nil {
		return 0
	}
	defer p.recycleSnapshot(ns)
	for remaining := *ns; len(remaining) > 0; {
		remaining = p.checkUntilPanic(remaining, &completed)
	}
	return completed
}

// CancelForKey removes all operations that wait for key, and returns them in the order
// in which they were added. None of their callbacks runs. They no longer wait for their
// other keys either. The caller may complete them with ForceComplete, or add them
// again.
func (p *Purgatory[K]) CancelForKey(key K) []Operation[K] {
	ns := p.takeSnapshot(key)
	if ns == nil {
		return nil
	}
	defer p.recycleSnapshot(ns)
	return removeOperations(*ns, reasonCancelled)
}

// Len returns the number of waiting operations. It is exact if no operation is added,
// completed or removed meanwhile. O(shards).
func (p *Purgatory[K]) Len() int { return p.Stats().Delayed }

// Watched returns the sum of the lengths of all keys' lists: an operation counts once
// for each of its keys. O(shards).
func (p *Purgatory[K]) Watched() int { return p.Stats().Watched }

// Stats returns the gauges and counts. O(shards).
func (p *Purgatory[K]) Stats() Stats {
	p.mustBeMade()
	st := Stats{Panics: p.panicCount.Load()}
	for i := range p.shards {
		sh := &p.shards[i]
		sh.mu.Lock()
		st.addCounts(&sh.counts)
		st.Watched += sh.watchCount
		st.Keys += len(sh.lists)
		sh.mu.Unlock()
	}
	return st
}

// Close ends the Purgatory. It refuses new operations, and removes the waiting ones
// without completing them: [Purgatory.TakeLeftover] returns them. Close does not wait
// for callbacks. A second Close waits for the first. The error is always nil.
func (p *Purgatory[K]) Close() error {
	p.mustBeMade()
	// Close removes the operations that have not expired yet. The expired ones are
	// counted in runningExpirations, so that Shutdown waits for them.
	p.closed.Store(true)
	p.closeMu.Lock()
	defer p.closeMu.Unlock()
	var ns []*node[K]
	for i := range p.shards {
		sh := &p.shards[i]
		sh.mu.Lock()
		sh.closed = true
		ns = sh.keylessList.appendNodesLocked(ns[:0])
		for _, l := range sh.lists {
			ns = l.appendNodesLocked(ns)
		}
		sh.mu.Unlock()
		ops := removeOperations(ns, reasonHandedBack)
		p.leftover.Lock()
		p.leftover.ops = append(p.leftover.ops, ops...)
		p.leftover.Unlock()
	}
	return nil
}

// Shutdown does what Close does, and waits until the callbacks of expired operations
// have returned. If ctx ends first, Shutdown returns the error of ctx. A callback that
// calls Shutdown waits for itself, until ctx ends.
func (p *Purgatory[K]) Shutdown(ctx context.Context) error {
	p.mustBeMade()
	p.Close()
	return p.runningExpirations.Wait(ctx)
}

// TakeLeftover returns the operations that Close or Shutdown has removed, in no
// particular order, each only once. The caller may complete them with ForceComplete, or
// add them to another purgatory.
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
	return &p.shards[maphash.Comparable(p.hashSeed, key)&uint64(len(p.shards)-1)]
}

// takeSnapshot returns a copy of the key's list, or nil if there is none. The caller
// must pass the copy to recycleSnapshot.
func (p *Purgatory[K]) takeSnapshot(key K) *[]*node[K] {
	sh := p.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l, ok := sh.lists[key]
	if !ok {
		return nil
	}
	ns := p.snapshotPool.Get().(*[]*node[K])
	*ns = l.appendNodesLocked((*ns)[:0])
	return ns
}

func (p *Purgatory[K]) recycleSnapshot(ns *[]*node[K]) {
	clear(*ns)
	p.snapshotPool.Put(ns)
}

func removeOperations[K comparable](ns []*node[K], reason leaveReason) (ops []Operation[K]) {
	for _, n := range ns {
		if op, ok := n.removeOperation(reason); ok {
			ops = append(ops, op)
		}
	}
	return ops
}
