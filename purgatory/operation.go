package purgatory

import (
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
	"go.uber.org/atomic"
)

// An Operation waits until a condition holds or its time is up: a request that cannot
// be answered yet. A type becomes one by embedding [Delayed] and having the three
// methods.
//
// An operation is completed once, by whichever comes first: a check that finds that
// its condition holds, ForceComplete, or its timeout.
//
// A panic in a method of the operation reaches the caller of TryCompleteElseWatch or
// ForceComplete. In CheckAndComplete and at the timeout it goes to the panic handler,
// and the other operations go on. A panic in TryComplete leaves the operation as it
// was: if it was waiting, it still waits, with its timeout; if it was being added, it
// is not watched, and may be added again. A panic in OnComplete does not undo the
// completion. At the timeout OnExpiration then runs all the same.
type Operation[K comparable] interface {
	// TryComplete reports whether the condition holds. If it returns true the
	// purgatory completes the operation. It runs under the operation's own lock, on
	// the goroutine that checks, never twice at a time, and never again once the
	// operation is complete.
	//
	// It should be quick. It may read what it likes, [Delayed.IsCompleted] and the
	// purgatory's gauges too, but it must not complete, check, cancel or start any
	// operation, this or another: it would wait for one operation's lock while it
	// holds another's. CancelForKey, Close and Shutdown panic inside it, before they
	// take any; the others where they would have to wait.
	TryComplete() bool
	// OnComplete is called once, when the operation has been completed, for whatever
	// reason: also at the timeout, before OnExpiration. Answer the request here.
	OnComplete()
	// OnExpiration is called after OnComplete if the timeout completed the
	// operation.
	OnExpiration()
	// delayed comes with Delayed.
	delayed() *Delayed[K]
}

// operation is the part of an Operation that does not depend on the key.
type operation interface {
	TryComplete() bool
	OnComplete()
	OnExpiration()
}

// Delayed is what an [Operation] embeds. The zero value is ready for use. Do not copy
// it once it has been added to a purgatory, and do not use it for another operation.
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
// Every arrow is one critical section of the operation's lock, and leaving waiting
// takes the operation out of the lists of all its keys. So of all callers that race,
// exactly one gets the operation. An idle operation can also be forced.
type Delayed[K comparable] struct {
	mu sync.Mutex
	// completed is set once, under mu.
	completed atomic.Bool

	// All below is guarded by mu.

	// op is what embeds this, nil until it is first added to a purgatory.
	op operation
	// nodes are the places in the lists of its keys, in different lists. They
	// are there while the operation waits, and nil otherwise. The first one's
	// shard is where the operation is counted.
	nodes []node[K]
	// timer is the timeout's. While TryCompleteElseWatch still checks, and when
	// the operation does not wait, it names none.
	timer timer.Handle
}

// # Locks, and the order in which they are taken
//
//	Delayed.mu   the life of an operation; TryComplete runs under it
//	  > shard.mu   the lists of the shard's keys
//	  > timer's
//
// Two operations are never locked at once, nor two shards. OnComplete and
// OnExpiration run under no lock.

//lint:ignore U1000 it is called by way of the interface Operation
func (d *Delayed[K]) delayed() *Delayed[K] { return d }

// IsCompleted reports whether the operation has been completed. Its OnComplete
// may still be running. It takes no lock.
func (d *Delayed[K]) IsCompleted() bool { return d.completed.Load() }

// ForceComplete completes the operation, whether its condition holds or not, and runs
// its OnComplete. It reports true if this call did so, and false if the operation was
// completed before. It waits for a running TryComplete of the operation.
//
// An operation that does not wait can be completed too: before it is added to a
// purgatory, or after CancelForKey. If it has never been added, OnComplete runs when
// it is.
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

// lock takes mu. It panics instead of waiting for it inside a TryComplete.
func (d *Delayed[K]) lock() {
	if !d.mu.TryLock() {
		refuseInsideTryComplete()
		d.mu.Lock()
	}
}

// enter asks a new operation whether it is complete, and lets it wait if it is
// not. It reports whether OnComplete is to be run, and whether it was this call
// that completed the operation.
//
// The lock is held from the first check to the start of the timer. If the condition comes
// true between the two checks, and CheckAndComplete runs before the operation is in the
// key's list, the second check sees the condition. If CheckAndComplete runs later, it finds
// the operation in the list, and waits for the lock. Everything else that completes the
// operation waits for the lock too, so no timer is started for a complete operation.
func (d *Delayed[K]) enter(p *Purgatory[K], op Operation[K], timeout time.Duration, keys []K) (run, mine bool, err error) {
	d.lock()
	waits := false
	defer func() {
		if !waits && d.nodes != nil {
			d.leaveLocked(refused) // TryComplete has panicked, or there was an error
		}
		d.mu.Unlock()
	}()
	if d.nodes != nil {
		waits = true
		panic("purgatory: the operation is waiting already")
	}
	if d.completed.Load() {
		// If ForceComplete came before the first start, OnComplete still has to run.
		run, d.op = d.op == nil, op
		return run, false, nil
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
	waits = true
	return false, false, nil
}

// watchLocked puts the operation in the lists of its keys. If that fails, or
// hashing a key panics, it may be in some of them.
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

// linkLocked makes the operation's i-th node one of the list that of returns
// under the shard's lock.
func (d *Delayed[K]) linkLocked(sh *shard[K], i int, of func(*shard[K]) *list[K]) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return ErrClosed
	}
	d.nodes[i].owner = d
	sh.linkLocked(of(sh), &d.nodes[i])
	if i == 0 {
		sh.n.enter()
	}
	return nil
}

// completeLocked completes the operation, which was not, for another reason than
// its timeout. The caller runs OnComplete when it has released the lock.
func (d *Delayed[K]) completeLocked() {
	d.completed.Store(true)
	d.withdrawLocked(completed)
}

// withdrawLocked takes the operation out of everything before its timeout. If
// the timer has fired by now its expire finds nothing to do.
func (d *Delayed[K]) withdrawLocked(why outcome) {
	if d.nodes != nil {
		d.timer.Stop()
		d.leaveLocked(why)
	}
}

// leaveLocked takes the operation out of the lists of all its keys. After that only the
// snapshots of running checks still refer to it.
func (d *Delayed[K]) leaveLocked(why outcome) {
	for i := range d.nodes {
		l := d.nodes[i].list
		if l == nil {
			continue // the start has failed before it came to this one
		}
		sh := l.shard
		sh.mu.Lock()
		sh.unlinkLocked(&d.nodes[i])
		if i == 0 {
			sh.n.leave(why)
		}
		sh.mu.Unlock()
	}
	d.nodes, d.timer = nil, timer.Handle{}
}

// checkSome asks the operations that still wait in ns, in turn, and completes
// those that say yes. It comes back early after one that has panicked, and
// returns what is left to do. One deferred function serves many operations: two for
// each took a fifth of the time (BenchmarkCheckAndComplete_Watchers).
func (p *Purgatory[K]) checkSome(ns []*node[K], completed *int) (rest []*node[K]) {
	var asked *Delayed[K] // the operation whose code is running; nil: none
	locked := false
	defer func() {
		if locked {
			asked.mu.Unlock()
		}
		if asked != nil {
			if v := recover(); v != nil {
				p.report(v)
			}
		}
	}()
	for i, n := range ns {
		rest = ns[i+1:]
		d := n.owner
		d.lock()
		if n.list == nil {
			d.mu.Unlock()
			continue
		}
		asked, locked = d, true
		op, done := d.op, try(d.op)
		if done {
			d.completeLocked()
		}
		locked = false
		d.mu.Unlock()
		if done {
			*completed++ // also if OnComplete panics
			op.OnComplete()
		}
		asked = nil
	}
	return rest
}

// take takes the operation out, uncompleted, if it still waits in n.
func (n *node[K]) take(why outcome) (op Operation[K], ok bool) {
	d := n.owner
	d.lock()
	defer d.mu.Unlock()
	if n.list == nil {
		return nil, false
	}
	d.withdrawLocked(why)
	return d.op.(Operation[K]), true
}

// expire is what the timer runs, with the operation's first node. An operation that
// was taken out after the timer had fired no longer waits in n, even if it was added
// again meanwhile.
func (n *node[K]) expire() {
	d := n.owner
	d.lock()
	if n.list == nil {
		d.mu.Unlock()
		return
	}
	p, op := n.list.shard.p, d.op
	// Counted before the operation leaves the lists: a Close that no longer
	// finds it there finds it here.
	p.expiring.Add(1)
	d.completed.Store(true)
	d.leaveLocked(expired)
	d.mu.Unlock()
	// Deferred, so that they run even if a callback ends the goroutine.
	defer p.expiring.Add(-1)
	defer p.guard(op.OnExpiration)
	p.guard(op.OnComplete)
}

// fewKeys is up to how many keys comparing each with each is the cheapest way to
// find the equal ones.
const fewKeys = 16

// distinct returns keys without repetitions, in the order of their first
// appearance. It does not change keys, and copies them only if it must.
func distinct[K comparable](keys []K) []K {
	var seen map[K]struct{}
	if len(keys) > fewKeys {
		seen = make(map[K]struct{}, len(keys))
	}
	out, copied := keys, false
	for i, key := range keys {
		if key != key { // a NaN, or something that holds one
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
			out, copied = append([]K(nil), keys[:i]...), true
		case !repeated && copied:
			out = append(out, key)
		}
	}
	return out
}
