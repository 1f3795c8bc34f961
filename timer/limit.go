package timer

import "sync"

// limit bounds the number of pending timers over all shards without a counter
// that every start and stop would have to touch: a shard takes credits from
// here by the batch, spends one for each timer that it starts and earns one for
// each that fires or stops.
type limit struct {
	batch int

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
		l.mu.Lock()
		sh.credit = min(l.batch, l.free)
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
	if sh.credit > 2*l.batch {
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
// them are spent. It is called without any lock held.
func (l *limit) gather(shards []*shard) {
	for _, sh := range shards {
		sh.mu.Lock()
		l.giveBackLocked(sh, sh.credit)
		sh.mu.Unlock()
	}
}
