package timer

import (
	"iter"
	"sync"

	"go.uber.org/atomic"
)

// defaultShards returns how many shards there are by default. One for each proc would do,
// but those who stop timers and the poller want their locks too. With two of them two procs
// that stop timers of each other's get into each other's way: BenchmarkChurn, n=1M/p=2,
// 550 ns, with four 440, with eight 280. On many procs more shards cost the poller more than
// they gain: docs/scaling.md.
func defaultShards(procs int) int { return max(2*procs, min(8*procs, 64)) }

// busyStarts is how many starts find their shard busy before starts are spread.
const busyStarts = 256

// shards are a Scheduler's shards. Each is made when it is first used.
//
// Timers start on the first one: a shard that is used takes memory, and few programs
// start so many timers that one lock would not do. If they do, starts spread over all: each
// proc uses one that it has to itself, most of the time. Procs that find each other, or those
// who stop timers, on the same one move on: so few are used where starts do not meet.
type shards struct {
	s     *Scheduler
	first *shard
	all   []atomic.Pointer[shard] // nil for those that are not made yet
	// spread says that all are used, and not just the first.
	spread atomic.Bool
	// tokens hands each P a *token then.
	tokens sync.Pool

	busy atomic.Int32  // how many starts have found the first shard busy
	last atomic.Uint32 // the number of tokens that were made
}

// token is what a P keeps between two starts: the shard that it uses.
type token struct{ sh *shard }

func (ss *shards) init(s *Scheduler) {
	ss.s = s
	ss.all = make([]atomic.Pointer[shard], s.config.shards)
	ss.tokens.New = func() any {
		return &token{ss.at(int(ss.last.Inc()) % len(ss.all))}
	}
	ss.first = ss.at(0)
}

// at returns shard i. It makes it, unless another goroutine is faster.
func (ss *shards) at(i int) *shard {
	if sh := ss.all[i].Load(); sh != nil {
		return sh
	}
	ss.all[i].CompareAndSwap(nil, newShard(ss.s, i))
	return ss.all[i].Load()
}

// made returns the shards that have been made. Who visits them all to change or to
// count something need not bother about one that is made meanwhile, if what was
// stored before made is what its first user loads, as it does Scheduler.closed: the loads of
// the table and of these are of one order.
func (ss *shards) made() iter.Seq[*shard] {
	return func(yield func(*shard) bool) {
		for i := range ss.all {
			if sh := ss.all[i].Load(); sh != nil && !yield(sh) {
				return
			}
		}
	}
}

// lockShard locks a shard for a new timer.
func (s *Scheduler) lockShard() *shard {
	ss := &s.shards
	if !ss.spread.Load() {
		if sh := ss.first; sh.mu.TryLock() {
			return sh
		}
		return ss.lockBusy()
	}
	t := ss.tokens.Get().(*token)
	sh := t.sh
	if !sh.mu.TryLock() {
		// Two Ps use this shard, or the poller drains it. Where there is no such
		// neighbour, starts do not wait for locks.
		sh = ss.after(sh)
		t.sh = sh
		sh.mu.Lock()
	}
	ss.tokens.Put(t)
	return sh
}

// lockBusy is lockShard for when the first shard is busy: it locks another, if there
// is one.
func (ss *shards) lockBusy() *shard {
	if len(ss.all) > 1 && ss.busy.Inc() >= busyStarts {
		ss.spread.Store(true)
	}
	sh := ss.after(ss.first)
	sh.mu.Lock()
	return sh
}

// after returns the shard after sh.
func (ss *shards) after(sh *shard) *shard { return ss.at((sh.index + 1) % len(ss.all)) }
