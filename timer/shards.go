package timer

import (
	"iter"
	"runtime"
	"sync"
	"time"
	"weak"

	"go.uber.org/atomic"
)

// homesPerProc and manyHomes bound how many shards starts use. One for each proc would
// do, but those who stop timers and the poller want their locks too. With two of them
// two procs that stop timers of each other's get into each other's way: BenchmarkChurn,
// n=1M/p=2, 550 ns, with four 440, with eight 280. On many procs more shards cost the
// poller more than they gain: docs/scaling.md. So there are as many as there are shards
// by default, eight for each proc, but no more than manyHomes, or two for each proc.
const (
	homesPerProc = 2
	manyHomes    = 64
)

// A Scheduler's starts are spread over its homes once busyStarts of them have found
// their shard busy within busyTime.
const (
	busyStarts = 256
	busyTime   = time.Second
)

// shards are a Scheduler's shards. Each is made when it is first used.
//
// Timers start on the first one: a shard that is used takes memory, and few programs
// start so many timers that one lock would not do. If they do, starts spread over
// more, the homes: each on one that its proc has to itself, most of the time. Procs
// that find each other, or those who stop timers, on the same one move on: so few homes
// are used where starts do not meet. Keys go by their hash, over all shards.
type shards struct {
	s     *Scheduler
	first *shard
	// groups are the shards, with nil for groups and shards that are yet to be made.
	groups []atomic.Pointer[shardGroup]
	// homes is how many of them are homes, procs for how many procs they were made.
	homes, procs int
	// spread says that all homes are used, and not just the first.
	spread atomic.Bool
	// tokens hands each P a *token then.
	tokens sync.Pool

	mu sync.Mutex
	// busy counts the starts that have found the first shard busy since a moment.
	busy  int
	since int64
	// given[i] is the last token that home i was given to.
	given []weak.Pointer[token]
	next  int // the home that is given next if all are taken
}

// A shardGroup is as large as an object with pointers can be without a header.
type shardGroup [64]atomic.Pointer[shard]

// token is what a P keeps between two starts: the shard that it uses.
type token struct{ sh *shard }

func (ss *shards) init(s *Scheduler) {
	ss.s = s
	ss.groups = make([]atomic.Pointer[shardGroup], (s.config.shards-1)/len(shardGroup{})+1)
	ss.procs = runtime.GOMAXPROCS(0)
	ss.homes = min(max(homesPerProc*ss.procs, min(shardsPerProc*ss.procs, manyHomes)), s.config.shards)
	ss.tokens.New = func() any { return ss.newToken() }
	ss.first = ss.at(0)
}

// at returns shard i.
func (ss *shards) at(i int) *shard {
	if g := ss.groups[uint(i)/uint(len(shardGroup{}))].Load(); g != nil {
		if sh := g[uint(i)%uint(len(g))].Load(); sh != nil {
			return sh
		}
	}
	return ss.makeShard(i)
}

// makeShard makes shard i, unless another goroutine is faster.
func (ss *shards) makeShard(i int) *shard {
	group := &ss.groups[i/len(shardGroup{})]
	if group.Load() == nil {
		group.CompareAndSwap(nil, new(shardGroup))
	}
	sh := &group.Load()[i%len(shardGroup{})]
	sh.CompareAndSwap(nil, newShard(ss.s, i))
	return sh.Load()
}

// made returns the shards that have been made. Who visits them all to change or to
// count something need not bother about one that is made meanwhile, if what was
// stored before made is what its first user loads, as it does Scheduler.closed and
// the limit's supply: the loads of the table and of these are of one order.
func (ss *shards) made() iter.Seq[*shard] {
	return func(yield func(*shard) bool) {
		for i := range ss.groups {
			g := ss.groups[i].Load()
			if g == nil {
				continue
			}
			for j := range g {
				if sh := g[j].Load(); sh != nil && !yield(sh) {
					return
				}
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
	if ss.homes > 1 && ss.isBusy() {
		ss.spread.Store(true)
		return ss.s.lockShard()
	}
	sh := ss.after(ss.first)
	sh.mu.Lock()
	return sh
}

// after returns the home after sh.
func (ss *shards) after(sh *shard) *shard { return ss.at((sh.index + 1) % ss.homes) }

// isBusy counts a start that has found the first shard busy, and reports whether
// starts are to be spread.
func (ss *shards) isBusy() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if now := ss.s.now(); now-ss.since > int64(busyTime) {
		ss.busy, ss.since = 0, now
	}
	ss.busy++
	return ss.busy >= busyStarts
}

// newToken returns a token for a P that has none: because it has never had one, or
// because two collections have emptied the pool. It takes the first home whose token
// is gone. So a P that lost its token finds the home again that it, or another, has
// left: what was started there is pending, and no further shards come into use.
func (ss *shards) newToken() *token {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	i := ss.freeHomeLocked()
	t := &token{ss.at(i)}
	if i < len(ss.given) {
		ss.given[i] = weak.Make(t)
	} else {
		ss.given = append(ss.given, weak.Make(t))
	}
	return t
}

func (ss *shards) freeHomeLocked() int {
	for i := range ss.given {
		if ss.given[i].Value() == nil {
			return i
		}
	}
	if len(ss.given) < ss.homes {
		return len(ss.given)
	}
	i := ss.next
	ss.next = (i + 1) % ss.homes
	return i
}
