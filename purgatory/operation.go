package purgatory

import (
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// An Operation is a request that cannot be answered yet. It waits until a condition
// holds or a timeout passes. A type becomes an Operation by embedding [Delayed] and
// having the methods TryComplete, OnComplete and OnExpiration.
//
// # Panics
//
// In CompleteOrWatch and ForceComplete, a panic of the operation reaches the
// caller. In CheckAndComplete and at the timeout, it goes to the panic handler, and
// other operations continue.
//
// After a panic in TryComplete, a waiting operation still waits, and a new operation is
// not added. After a panic in OnComplete, the operation is complete.
type Operation[K comparable] interface {
	// TryComplete reports whether the condition holds. If it returns true, the
	// purgatory completes the operation. TryComplete runs under the operation's own
	// lock, and never after the operation is complete.
	//
	// TryComplete should be quick. It must not complete, check, cancel or add an
	// operation, or close the purgatory: such a call may wait for ever. It may call
	// [Delayed.IsCompleted] and the purgatory's Stats.
	TryComplete() bool
	// OnComplete is called once, after the operation has been completed for any reason.
	// Answer the request here. At the timeout, OnExpiration is called next.
	OnComplete()
	// OnExpiration is called after OnComplete, if the timeout completed the operation.
	// It is called even if OnComplete panics.
	OnExpiration()
	// delayed returns the embedded Delayed.
	delayed() *Delayed[K]
}

// operationCallbacks are the methods of an Operation that do not depend on its keys.
type operationCallbacks interface {
	TryComplete() bool
	OnComplete()
	OnExpiration()
}

// Delayed is embedded in an [Operation]. The zero value is ready to use. Do not copy a
// Delayed after its first use, and do not use it for another operation.
//
// # An operation's life
//
//	            its condition holds when it is added, or it is forced
//	idle ──────────────────────────────────────────────────▶ completed
//	 │ ▲                                                         ▲
//	 │ └── cancelled, or removed by Close ──────┐                │
//	 └──── added ───────────────────────────▶ waiting ───────────┘
//	                                                checked, forced, expired
//
// Every transition happens under the operation's lock. So if several calls compete for
// an operation, only one of them makes a transition. An operation that stops waiting
// also leaves the lists of all its keys.
type Delayed[K comparable] struct {
	mu sync.Mutex
	// completed is set once, under mu. It may be read without mu.
	completed atomic.Bool

	// mu guards the fields below.

	// op is the value that embeds this Delayed. It is nil until the operation is first
	// added.
	op operationCallbacks
	// nodes has one node for each key, in that key's list. It is nil unless the
	// operation waits. Stats counts the operation in the first node's shard.
	nodes []node[K]
	// timer fires at the timeout. It is zero unless the operation waits.
	timer timer.Handle
}

// # Locks, in the order in which they are taken
//
//	Delayed.mu   the life of an operation; TryComplete runs under it
//	  > shard.mu   the lists of the shard's keys
//	  > locks of package timer
//
// No goroutine holds the locks of two operations, or of two shards. OnComplete and
// OnExpiration run under no lock.

//lint:ignore U1000 it is called by way of the interface Operation
func (d *Delayed[K]) delayed() *Delayed[K] { return d }

// IsCompleted reports whether the operation has been completed. Its OnComplete may still
// be running. IsCompleted takes no lock.
func (d *Delayed[K]) IsCompleted() bool { return d.completed.Load() }

// ForceComplete completes the operation, even if its condition does not hold, and runs
// its OnComplete. It reports false if the operation was already complete. It waits for
// a running TryComplete of the operation.
//
// It also completes an operation that is not waiting. If the operation has never been
// added, OnComplete runs when it is added.
func (d *Delayed[K]) ForceComplete() bool {
	if d.completed.Load() {
		return false
	}
	d.mu.Lock()
	if d.completed.Load() {
		d.mu.Unlock()
		return false
	}
	op := d.op
	d.completeLocked()
	d.mu.Unlock()
	if op != nil {
		op.OnComplete()
	}
	return true
}

// addTo adds an operation to a purgatory: it completes the operation if the condition
// holds, and otherwise makes it wait. runOnComplete reports whether the caller must run
// OnComplete. byThisCall reports whether this call completed the operation.
func (d *Delayed[K]) addTo(p *Purgatory[K], op Operation[K], timeout time.Duration, keys []K) (runOnComplete, byThisCall bool, err error) {
	d.mu.Lock()
	waiting := false
	defer func() {
		if !waiting && d.nodes != nil {
			d.leaveListsLocked(reasonRefused) // an error, or a panic of TryComplete
		}
		d.mu.Unlock()
	}()
	if d.nodes != nil {
		waiting = true
		panic("purgatory: CompleteOrWatch: the operation is already waiting")
	}
	if d.completed.Load() {
		// If ForceComplete completed the operation before it was added, OnComplete must
		// run now.
		runOnComplete, d.op = d.op == nil, op
		return runOnComplete, false, nil
	}
	d.op = op
	if p.closed.Load() {
		return false, false, ErrClosed
	}
	if d.op.TryComplete() {
		d.completeLocked()
		return true, true, nil
	}
	if err := d.joinListsLocked(p, keys); err != nil {
		return false, false, err
	}
	// Check again: CheckAndComplete may have been called before the operation was in the
	// lists. From now on CheckAndComplete finds the operation, and waits for d.mu.
	if d.op.TryComplete() {
		d.completeLocked()
		return true, true, nil
	}
	if d.timer, err = p.s.Start(timeout, d.nodes[0].expire); err != nil {
		return false, false, err
	}
	waiting = true
	return false, false, nil
}

// joinListsLocked puts the operation into the lists of its keys. After an error or a
// panic, the operation may be in some of these lists.
func (d *Delayed[K]) joinListsLocked(p *Purgatory[K], keys []K) error {
	for _, key := range keys {
		if key != key { // NaN, or a value that contains one
			panic("purgatory: a key must be equal to itself")
		}
	}
	d.nodes = make([]node[K], max(len(keys), 1))
	if len(keys) == 0 {
		return d.joinListLocked(&p.shards[0], 0, func(sh *shard[K]) *list[K] { return &sh.keylessList })
	}
	for i, key := range keys {
		err := d.joinListLocked(p.shardOf(key), i, func(sh *shard[K]) *list[K] { return sh.getOrMakeListLocked(key) })
		if err != nil {
			return err
		}
	}
	return nil
}

// joinListLocked appends the operation's i-th node to the list that listOf returns. It
// calls listOf under the lock of sh.
func (d *Delayed[K]) joinListLocked(sh *shard[K], i int, listOf func(*shard[K]) *list[K]) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return ErrClosed
	}
	d.nodes[i].owner = d
	sh.linkNodeLocked(listOf(sh), &d.nodes[i])
	if i == 0 {
		sh.counts.countEntered()
	}
	return nil
}

// completeLocked completes the operation, for any reason except its timeout. The
// operation must not be complete yet. The caller unlocks and then runs OnComplete.
func (d *Delayed[K]) completeLocked() {
	d.completed.Store(true)
	d.stopWaitingLocked(reasonCompleted)
}

// stopWaitingLocked stops the timer and takes the operation out of its lists. If the
// timer has already fired, expire finds nothing to do.
func (d *Delayed[K]) stopWaitingLocked(reason leaveReason) {
	if d.nodes != nil {
		d.timer.Stop()
		d.leaveListsLocked(reason)
	}
}

// leaveListsLocked takes the operation out of the lists of all its keys. Afterwards only
// the snapshots of running checks refer to the operation.
func (d *Delayed[K]) leaveListsLocked(reason leaveReason) {
	for i := range d.nodes {
		l := d.nodes[i].list
		if l == nil {
			continue // the start failed before this node was linked
		}
		sh := l.shard
		sh.mu.Lock()
		sh.unlinkNodeLocked(&d.nodes[i])
		if i == 0 {
			sh.counts.countLeave(reason)
		}
		sh.mu.Unlock()
	}
	d.nodes, d.timer = nil, timer.Handle{}
}

// checkUntilPanic calls TryComplete of the operations in ns that still wait, in order,
// and completes those that return true. After a panic it returns the nodes that remain.
func (p *Purgatory[K]) checkUntilPanic(ns []*node[K], completed *int) (remaining []*node[K]) {
	var running *Delayed[K] // the operation whose method runs now, or nil
	holdsLock := false
	defer func() { // once for all operations: once for each is slower
		if holdsLock {
			running.mu.Unlock()
		}
		if running != nil {
			if v := recover(); v != nil {
				p.reportPanic(v)
			}
		}
	}()
	for i, n := range ns {
		remaining = ns[i+1:]
		d := n.owner
		d.mu.Lock()
		if n.list == nil {
			d.mu.Unlock()
			continue
		}
		running, holdsLock = d, true
		op, done := d.op, d.op.TryComplete()
		if done {
			d.completeLocked()
		}
		holdsLock = false
		d.mu.Unlock()
		if done {
			*completed++ // even if OnComplete panics
			op.OnComplete()
		}
		running = nil
	}
	return remaining
}

// removeOperation removes the operation without completing it. ok is false if the
// operation no longer waits in n's list.
func (n *node[K]) removeOperation(reason leaveReason) (op Operation[K], ok bool) {
	d := n.owner
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.list == nil {
		return nil, false
	}
	d.stopWaitingLocked(reason)
	return d.op.(Operation[K]), true
}

// expire completes an operation when its timer fires. n is the operation's first node.
// If n is in no list, the operation has been removed since the timer fired.
func (n *node[K]) expire() {
	d := n.owner
	d.mu.Lock()
	if n.list == nil {
		d.mu.Unlock()
		return
	}
	p, op := n.list.shard.p, d.op
	// First count the operation in runningExpirations, so that Shutdown waits for its
	// callbacks. Then take it out of its lists, so that Close no longer finds it.
	p.runningExpirations.Add(1)
	d.completed.Store(true)
	d.leaveListsLocked(reasonExpired)
	d.mu.Unlock()
	// Deferred, so that both calls happen even if a callback ends the goroutine.
	defer p.runningExpirations.Add(-1)
	defer p.callAndReportPanic(op.OnExpiration)
	p.callAndReportPanic(op.OnComplete)
}
