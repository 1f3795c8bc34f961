package timer

import (
	"errors"
	"iter"
	"sync"

	"go.uber.org/atomic"
)

// limit bounds the number of pending timers over all shards without a counter
// that every start and stop would have to touch.
//
// While there is plenty of room, a shard takes credits from here by the batch,
// spends one for each timer that it starts, earns one for each that fires or stops,
// and keeps up to two batches. A start that finds no credit, neither in its shard
// nor here, has all shards' credits gathered. From then on they are scarce: no
// shard keeps a credit that it does not spend at once, so that whoever finds none
// here knows, without a look at the shards, that there is none. When a batch for
// each shard has come together here there is plenty again. So at least one start a
// shard, and one end of a timer, come between two gatherings.
type limit struct {
	batch int
	// enough is the number of free credits from which on there is plenty.
	enough int

	// gathering is held by whoever gathers. No other lock is held when it is taken.
	gathering sync.Mutex

	mu sync.Mutex
	// free are the credits that no shard has. The lock of a shard may be held
	// while mu is taken.
	free int
	// supply changes under mu. A shard reads it without mu too: see gather.
	supply atomic.Int32
}

// The supply of credits.
const (
	plenty   = iota
	gathered // some shards' have been taken back, others' have yet to be
	scarce
)

// errGather says that a timer was not started for want of room, but that there
// may be some: gather, and start it again.
var errGather = errors.New("timer: there may be room in other shards")

func newLimit(n, shards int) *limit {
	batch := min(max(n/(4*shards), 1), 64)
	return &limit{batch: batch, enough: batch * shards, free: n}
}

// takeLocked spends one of the shard's credits. The error is ErrTooManyPending if
// there is none, neither in the shard nor anywhere else, or errGather.
func (l *limit) takeLocked(sh *shard) error {
	if err := l.fillLocked(sh); err != nil {
		return err
	}
	sh.credit--
	return nil
}

// fillLocked makes sure that the shard has a credit. Its errors are takeLocked's.
func (l *limit) fillLocked(sh *shard) error {
	if sh.credit > 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 1
	if l.supply.Load() == plenty {
		n = l.batch
	}
	sh.credit = min(n, l.free)
	l.free -= sh.credit
	switch {
	case sh.credit > 0:
		return nil
	case l.supply.Load() == scarce:
		return ErrTooManyPending
	}
	return errGather
}

// giveLocked earns the shard n credits.
func (l *limit) giveLocked(sh *shard, n int) {
	sh.credit += n
	if l.supply.Load() != plenty {
		l.giveBackLocked(sh, sh.credit)
	} else if sh.credit > 2*l.batch {
		l.giveBackLocked(sh, sh.credit-l.batch)
	}
}

func (l *limit) giveBackLocked(sh *shard, n int) {
	sh.credit -= n
	l.give(n)
}

// give adds to the free credits.
func (l *limit) give(n int) {
	l.mu.Lock()
	l.free += n
	if l.supply.Load() == scarce && l.free >= l.enough {
		l.supply.Store(plenty)
	}
	l.mu.Unlock()
}

// gather takes every shard's credits back and makes them scarce, unless they are
// by now. It is called without any lock held, before another try to take one.
// O(shards).
//
// A shard that finds plenty keeps credits. If it does so just before this changes,
// it holds its lock until it has them, and gather, which comes to that lock later,
// finds them. If it has the lock after gather had it, it finds no plenty. So once
// gather has had all locks, all credits are here or spent.
func (l *limit) gather(shards iter.Seq[*shard]) {
	l.gathering.Lock()
	defer l.gathering.Unlock()
	if !l.changeSupply(plenty, gathered) {
		return
	}
	for sh := range shards {
		sh.mu.Lock()
		l.giveBackLocked(sh, sh.credit)
		sh.mu.Unlock()
	}
	l.changeSupply(gathered, scarce)
}

func (l *limit) changeSupply(from, to int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.supply.CompareAndSwap(from, to)
}
