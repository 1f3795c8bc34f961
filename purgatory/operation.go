package purgatory

import (
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// An Operation is a request that cannot be answered yet. It waits until a condition
// holds or a timeout passes. A type becomes an Operation by embedding [Delayed] and
// having the three methods.
//
// An operation is completed once: by a check that finds its condition true, by
// ForceComplete, or by its timeout.
//
// # Panics
//
//   - In TryCompleteElseWatch and ForceComplete, a panic of the operation reaches the
//     caller.
//   - In CheckAndComplete and at the timeout, the panic goes to the panic handler. The
//     other operations continue.
//   - After a panic in TryComplete, an operation that was waiting still waits, with its
//     timeout. An operation that was being added is not watched, and may be added
//     again.
//   - After a panic in OnComplete, the operation is complete. At the timeout,
//     OnExpiration still runs.
type Operation[K comparable] interface {
	// TryComplete reports whether the condition holds. If it returns true, the
	// purgatory completes the operation. TryComplete runs under the operation's own
	// lock, on the goroutine that checks. It runs on one goroutine at a time, and never
	// after the operation is complete.
	//
	// TryComplete should be quick. It may read anything, even [Delayed.IsCompleted] and
	// the purgatory's Stats. It must not complete, check, cancel or add any operation,
	// because it already holds an operation's lock. Inside TryComplete, CancelForKey,
	// Close and Shutdown always panic, and change nothing. The other methods panic only
	// if they would have to wait.
	TryComplete() bool
	// OnComplete is called once, after the operation has been completed for any reason.
	// Answer the request here. At the timeout, OnExpiration is called next.
	OnComplete()
	// OnExpiration is called after OnComplete, if the timeout completed the operation.
	OnExpiration()
	// delayed returns the embedded Delayed.
	delayed() *Delayed[K]
}

// operation is the part of an Operation that does not depend on the key.
type operation interface {
	TryComplete() bool
	OnComplete()
	OnExpiration()
}

// Delayed is embedded in an [Operation]. The zero value is ready to use. Do not copy a
// Delayed after it has been added to a purgatory, and do not use it for another
// operation.
//
// # An operation's life
//
//	                 its condition holds when it is added
//	idle ──────────────────────────────────────────────────▶ completed
//	 │ ▲                                                         ▲
//	 │ └── cancelled, handed back by Close ─────┐                │
//	 └──── added ───────────────────────────▶ waiting ───────────┘
//	                                                checked, forced, expired
//
// Every transition happens under the operation's lock. So if several calls race, only
// one of them makes the transition. An operation that stops waiting also leaves the
// lists of all its keys. ForceComplete also completes an idle operation.
type Delayed[K comparable] struct {
	mu sync.Mutex
	// completed is set once, under mu. It may be read without mu.
	completed atomic.Bool

	// mu guards the fields below.

	// op is the value that embeds this Delayed. It is nil until the operation is first
	// added.
	op operation
	// nodes has one node for each key, in that key's list. It is nil unless the
	// operation waits. The first node's shard counts the operation for Stats.
	nodes []node[K]
	// timer fires at the timeout. It is zero unless the operation waits.
	// TryCompleteElseWatch sets it after its checks.
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

// ForceComplete completes the operation, whether its condition holds or not, and runs
// its OnComplete. It reports false if the operation was already completed.
// ForceComplete waits for a running TryComplete of the operation.
//
// ForceComplete also completes an operation that is not waiting. If the operation has
// never been added, OnComplete runs when it is added.
func (d *Delayed[K]) ForceComplete() bool {
	if d.completed.Load() {
		return false
	}
	d.lock()
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

// lock locks mu. Inside a TryComplete it panics instead of waiting.
func (d *Delayed[K]) lock() {
	if !d.mu.TryLock() {
		refuseInsideTryComplete()
		d.mu.Lock()
	}
}

// enter adds an operation. It completes the operation if the condition holds, and
// otherwise makes it wait. runOnComplete reports whether the caller must run
// OnComplete. byThisCall reports whether this call completed the operation.
//
// enter checks the condition twice, and holds d.mu until the timer has started. Suppose
// that the condition becomes true between the checks, and CheckAndComplete is called.
// If that call comes before the operation is in the key's list, the second check sees
// the condition. If it comes later, it finds the operation in the list, and waits for
// d.mu. ForceComplete waits for d.mu too, so no timer starts for a complete operation.
func (d *Delayed[K]) enter(p *Purgatory[K], op Operation[K], timeout time.Duration, keys []K) (runOnComplete, byThisCall bool, err error) {
	d.lock()
	waiting := false
	defer func() {
		if !waiting && d.nodes != nil {
			d.leaveListsLocked(refused) // TryComplete has panicked, or there was an error
		}
		d.mu.Unlock()
	}()
	if d.nodes != nil {
		waiting = true
		panic("purgatory: TryCompleteElseWatch: the operation is already waiting")
	}
	if d.completed.Load() {
		// If ForceComplete was called before the operation was added, OnComplete must run
		// now.
		runOnComplete, d.op = d.op == nil, op
		return runOnComplete, false, nil
	}
	d.op = op
	if p.closed.Load() {
		return false, false, ErrClosed
	}
	if try(d.op) {
		d.completeLocked()
		return true, true, nil
	}
	if err := d.watchLocked(p, keys); err != nil {
		return false, false, err
	}
	if try(d.op) {
		d.completeLocked()
		return true, true, nil
	}
	if d.timer, err = p.s.Start(timeout, d.nodes[0].expire); err != nil {
		return false, false, err
	}
	waiting = true
	return false, false, nil
}

// watchLocked puts the operation into the lists of its keys. If watchLocked fails or
// panics, the operation may already be in some of these lists.
func (d *Delayed[K]) watchLocked(p *Purgatory[K], keys []K) error {
	keys = distinct(keys)
	d.nodes = make([]node[K], max(len(keys), 1))
	if len(keys) == 0 {
		return d.linkLocked(&p.shards[0], 0, func(sh *shard[K]) *list[K] { return &sh.keyless })
	}
	for i, key := range keys {
		err := d.linkLocked(p.shardOf(key), i, func(sh *shard[K]) *list[K] { return sh.listLocked(key) })
		if err != nil {
			return err
		}
	}
	return nil
}

// linkLocked appends the operation's i-th node to the list that listOf returns. It
// calls listOf under the lock of sh.
func (d *Delayed[K]) linkLocked(sh *shard[K], i int, listOf func(*shard[K]) *list[K]) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return ErrClosed
	}
	d.nodes[i].owner = d
	sh.linkLocked(listOf(sh), &d.nodes[i])
	if i == 0 {
		sh.counts.enter()
	}
	return nil
}

// completeLocked completes the operation, for any reason except its timeout. The
// operation must not be complete yet. The caller unlocks and then runs OnComplete.
func (d *Delayed[K]) completeLocked() {
	d.completed.Store(true)
	d.stopWaitingLocked(completed)
}

// stopWaitingLocked stops the timer and takes the operation out of its lists. If the timer
// has already fired, expire finds nothing to do.
func (d *Delayed[K]) stopWaitingLocked(reason leaveReason) {
	if d.nodes != nil {
		d.timer.Stop()
		d.leaveListsLocked(reason)
	}
}

// leaveListsLocked takes the operation out of the lists of all its keys. Afterwards only the
// snapshots of running checks refer to the operation.
func (d *Delayed[K]) leaveListsLocked(reason leaveReason) {
	for i := range d.nodes {
		l := d.nodes[i].list
		if l == nil {
			continue // the start failed before this node was linked
		}
		sh := l.shard
		sh.mu.Lock()
		sh.unlinkLocked(&d.nodes[i])
		if i == 0 {
			sh.counts.leave(reason)
		}
		sh.mu.Unlock()
	}
	d.nodes, d.timer = nil, timer.Handle{}
}

// checkSome calls TryComplete of the operations in ns that still wait, in order, and
// completes those that return true. After a panic it returns early, with the nodes that
// remain.
//
// All operations share one deferred function, because two for each operation are slower
// (BenchmarkCheckAndComplete_Watchers).
func (p *Purgatory[K]) checkSome(ns []*node[K], completed *int) (remaining []*node[K]) {
	var running *Delayed[K] // the operation whose method runs now, or nil
	locked := false
	defer func() {
		if locked {
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
		d.lock()
		if n.list == nil {
			d.mu.Unlock()
			continue
		}
		running, locked = d, true
		op, done := d.op, try(d.op)
		if done {
			d.completeLocked()
		}
		locked = false
		d.mu.Unlock()
		if done {
			*completed++ // even if OnComplete panics
			op.OnComplete()
		}
		running = nil
	}
	return remaining
}

// remove removes the operation without completing it. ok is false if the operation no
// longer waits in n's list.
func (n *node[K]) remove(reason leaveReason) (op Operation[K], ok bool) {
	d := n.owner
	d.lock()
	defer d.mu.Unlock()
	if n.list == nil {
		return nil, false
	}
	d.stopWaitingLocked(reason)
	return d.op.(Operation[K]), true
}

// expire is called by the timer, on the operation's first node. If the operation was
// removed after the timer had fired, n is in no list and expire does nothing. This also
// holds if the operation has been added again, because it then has new nodes.
func (n *node[K]) expire() {
	d := n.owner
	d.lock()
	if n.list == nil {
		d.mu.Unlock()
		return
	}
	p, op := n.list.shard.p, d.op
	// Count the expiry before the operation leaves the lists. So if Close no longer
	// finds the operation in a list, Shutdown waits for its callbacks.
	p.expiring.Add(1)
	d.completed.Store(true)
	d.leaveListsLocked(expired)
	d.mu.Unlock()
	// Deferred, so that both calls happen even if a callback ends the goroutine.
	defer p.expiring.Add(-1)
	defer p.guard(op.OnExpiration)
	p.guard(op.OnComplete)
}

// Up to fewKeys keys, comparing each with each is faster than a map.
const fewKeys = 16

// distinct returns keys without repetitions, in the order of first appearance. It does
// not change keys. If no key is repeated, it returns keys itself.
func distinct[K comparable](keys []K) []K {
	var seen map[K]struct{}
	if len(keys) > fewKeys {
		seen = make(map[K]struct{}, len(keys))
	}
	unique, copied := keys, false
	for i, key := range keys {
		if key != key { // NaN, or a value that contains one
			panic("purgatory: a key must be equal to itself")
		}
		repeated := false
		if seen != nil {
			_, repeated = seen[key]
			seen[key] = struct{}{}
		} else {
			for _, k := range keys[:i] {
				repeated = repeated || k == key
			}
		}
		switch {
		case repeated && !copied:
			unique, copied = append([]K(nil), keys[:i]...), true
		case !repeated && copied:
			unique = append(unique, key)
		}
	}
	return unique
}
