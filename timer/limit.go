package timer

import (
	"sync"

	"go.uber.org/atomic"
)

// limit bounds the number of pending timers over all shards without a counter
// that every start and stop would have to touch: a shard takes credits from
// here by the batch, spends one for each timer that it starts and earns one for
// each that fires or stops.
type limit struct {
	batch int
	// gathering counts those who look for room in all shards: see gather.
	gathering atomic.Int32

	mu sync.Mutex
	// free are the credits that no shard has. The lock of a shard may be held
	// while mu is taken.
	free int
}

func newLimit(n, shards int) *limit {
	return &limit{batch: min(max(n/(4*shards), 1), 64), free: n}
}

// takeLocked spends one of the shard's credits. It reports false if there is
// none, neither in the shard nor here.
func (l *limit) takeLocked(sh *shard) bool {
	if sh.credit == 0 {
		batch := l.batch
		if l.gathering.Load() > 0 {
			batch = 1
		}
		l.mu.Lock()
		sh.credit = min(batch, l.free)
		l.free -= sh.credit
		l.mu.Unlock()
		if sh.credit == 0 {
			return false
		}
	}
	sh.credit--
	return true
}

// giveLocked earns the shard n credits. It keeps up to two batches of them.
func (l *limit) giveLocked(sh *shard, n int) {
	sh.credit += n
	if l.gathering.Load() > 0 {
		l.giveBackLocked(sh, sh.credit)
	} else if sh.credit > 2*l.batch {
		l.giveBackLocked(sh, sh.credit-l.batch)
	}
}

func (l *limit) giveBackLocked(sh *shard, n int) {
	sh.credit -= n
	l.mu.Lock()
	l.free += n
	l.mu.Unlock()
}

// gather takes every shard's credits back, so that a start fails only if all of
// them are spent. It is called without any lock held, before another try to take
// one; gathered is called after it.
//
// In between no shard keeps a credit that it does not spend at once: who takes or
// gives in a shard that gather has passed holds that shard's lock after it did,
// and so sees that it is under way. So if the try finds none, there is none.
func (l *limit) gather(shards []*shard) {
	l.gathering.Inc()
	for _, sh := range shards {
		sh.mu.Lock()
		l.giveBackLocked(sh, sh.credit)
		sh.mu.Unlock()
	}
}

func (l *limit) gathered() { l.gathering.Dec() }
