package timer

import (
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/timingwheel"
)

// A shard is a timing wheel, and the lock that guards it and its timers. Timers never
// change their shard.
type shard struct {
	s     *Scheduler
	index int

	mu sync.Mutex
	// mu guards the fields below.

	wheel *timingwheel.Wheel[payload]
	// wakeAt is what unlock passes to poller.wake: a bucket's expiration, shardEmptied or
	// atOnce. If wakeAt is never, unlock does not call wake.
	wakeAt int64
	counts counts
	// startedAtLastTrim is the value of counts.started at the last call of trimLocked.
	startedAtLastTrim uint64
	fallbacks         fallbacks
	// tickets holds the tickets that remove buckets from the queue, by slot number: see
	// queueBucket. Buckets of the lowest level have none.
	tickets map[uint32]delayqueue.Ticket

	// numTimerEntries is how many entries hold a *Timer: see entry.go. stoppedTimers
	// lists the stopped Timers of these entries. The pointer is set once, with the first
	// such entry, so Timer.Stop reads it without the lock.
	numTimerEntries int
	stoppedTimers   *stoppedTimers

	// The padding makes a shard four cache lines long. Processors fetch lines in pairs:
	// the locks of two shards are never in one pair.
	_ [96]byte
}

const (
	// never is later than any time.
	never = math.MaxInt64
	// shardEmptied is passed to poller.wake instead of a time if a shard has lost its
	// last timer.
	shardEmptied = never - 1
	// atOnce is passed to poller.wake instead of a time if callbacks wait for the poller.
	atOnce = 0
)

func newShard(s *Scheduler, index int) *shard {
	sh := &shard{s: s, index: index, wakeAt: never}
	sh.wheel = newWheel(&s.config, timingwheel.WithQueue(sh.queueBucket), timingwheel.WithPhase(shardPhase(&s.config, index)))
	return sh
}

// shardPhase returns an offset for the expiries of a shard's large slots, those of the
// third level and above. So the shards move many timers down at different times. It is a
// multiple of a slot of the second level, which avoids extra wake-ups.
func shardPhase(c *config, index int) int64 {
	numSlots := int64(c.slotsPerLevel)
	return numSlots * int64(index) / int64(c.numShards) * numSlots
}

func newWheel(c *config, opts ...timingwheel.Option) *timingwheel.Wheel[payload] {
	w, err := timingwheel.New[payload](int64(c.tick), c.slotsPerLevel, 0, opts...)
	if err != nil {
		panic("timer: " + err.Error()) // newConfig has checked all arguments
	}
	return w
}

// queueBucket puts a bucket into the delay queue, or replaces its expiration there.
// slotNumber numbers the slots of all levels, from the lowest level up. The wheel calls
// queueBucket with the shard's lock held.
func (sh *shard) queueBucket(b bucket.Bucket, slotNumber uint32, expiration int64) {
	q := sh.s.queue
	isUpperLevel := slotNumber >= uint32(sh.s.config.slotsPerLevel) // buckets of the lowest level are offered only once
	if isUpperLevel {
		q.Remove(sh.tickets[slotNumber])
	}
	ticket, isHead := q.OfferAt(queuedBucket{sh, b, expiration}, expiration)
	if isUpperLevel {
		if sh.tickets == nil {
			sh.tickets = make(map[uint32]delayqueue.Ticket)
		}
		sh.tickets[slotNumber] = ticket
	}
	if isHead {
		sh.wakeAt = min(sh.wakeAt, expiration)
	}
}

// unlock unlocks the shard, and then wakes the poller if that is necessary.
func (sh *shard) unlock() {
	if sh.wakeAt != never {
		sh.unlockAndWakePoller()
		return
	}
	sh.mu.Unlock()
}

func (sh *shard) unlockAndWakePoller() {
	wakeAt := sh.wakeAt
	sh.wakeAt = never
	sh.mu.Unlock()
	sh.s.poller.wake(wakeAt)
}

// slackFor returns the slack that the Scheduler gives a timer with delay d.
func (sh *shard) slackFor(d time.Duration) time.Duration { return sh.s.config.slack.forDelay(d) }

// startLocked starts a timer. If the timer is already due, it fires immediately, and id
// is zero. The error is ErrClosed or, for tagLimited, ErrTooManyPending.
func (sh *shard) startLocked(now int64, d, slack time.Duration, p payload, tag uint8) (id timingwheel.ID, err error) {
	if sh.s.closed.Load() {
		return id, ErrClosed
	}
	if tag == tagLimited && !sh.s.limit.acquire() {
		sh.counts.rejectedFull++
		return id, ErrTooManyPending
	}
	sh.counts.started++
	if d > 0 {
		sh.wheel.Observe(now)
		// AddTagged refuses a timer that is already due: another goroutine with a later
		// reading may have moved the wheel's clock past the deadline.
		if id, ok := sh.wheel.AddTagged(deadlineAfter(now, d), int64(slack), p, tag); ok {
			return id, nil
		}
	}
	sh.fireNowLocked(p, tag)
	return id, nil
}

// restartTickerLocked starts a Ticker again, as part of firing it. deadline must be later
// than the time at which the Ticker fires.
func (sh *shard) restartTickerLocked(now, deadline int64, t *Ticker) timingwheel.ID {
	slack := sh.slackFor(time.Duration(deadline - now))
	id, ok := sh.wheel.AddTagged(deadline, int64(slack), tickerPayload(t), tagTicker)
	if !ok {
		// Another goroutine has moved the wheel's clock past the deadline: the Ticker
		// fires at the next tick.
		id, _ = sh.wheel.AddTagged(sh.wheel.Clock()+1, 0, tickerPayload(t), tagTicker)
	}
	sh.counts.started++
	return id
}

// removeLocked removes a timer from the wheel before it has fired.
func (sh *shard) removeLocked(id timingwheel.ID) (p payload, ok bool) {
	if sh.s.limit != nil {
		if tag, ok := sh.wheel.Tag(id); ok && tag == tagLimited {
			sh.s.limit.release(1)
		}
	}
	p, ok = sh.wheel.Remove(id)
	sh.wakePollerIfEmptyLocked(ok)
	return p, ok
}

// wakePollerIfEmptyLocked makes unlock call poller.wake if the shard has lost its last
// timer. removed is false if no timer was removed.
func (sh *shard) wakePollerIfEmptyLocked(removed bool) {
	// If mustDiscardEmpty is true, the poller will remove empty buckets anyway: see
	// poller.wake.
	if removed && sh.wheel.Len() == 0 && !sh.s.poller.mustDiscardEmpty.Load() {
		sh.wakeAt = min(sh.wakeAt, shardEmptied)
	}
}

// stopLocked stops a timer. It reports false if no timer has that id.
func (sh *shard) stopLocked(id timingwheel.ID) bool {
	if _, ok := sh.removeLocked(id); !ok {
		return sh.stopFallbackLocked(id)
	}
	sh.counts.stopped++
	return true
}

// resetLocked changes the deadline of a timer. It reports false if no timer in the wheel
// has that id.
func (sh *shard) resetLocked(now int64, id timingwheel.ID, d, slack time.Duration) bool {
	if d > 0 {
		sh.wheel.Observe(now)
		if sh.wheel.MoveWithin(id, deadlineAfter(now, d), int64(slack)) {
			return true
		}
	}
	tag, ok := sh.wheel.Tag(id)
	if !ok {
		return false
	}
	p, _ := sh.removeLocked(id)
	sh.fireNowLocked(p, tagWithoutLimit(tag))
	return true
}

// fireNowLocked fires a timer that is due when it is started or reset.
func (sh *shard) fireNowLocked(p payload, tag uint8) {
	sh.counts.countFired(0)
	var at moment
	if tag != tagFunc {
		at = sh.s.moment()
	}
	if f, ok := sh.firePayloadLocked(p, tag, at); ok {
		sh.s.dispatcher.submitOrQueueLocked(sh, f)
	}
}

// firePayloadLocked does the part of firing that needs the lock: it sends on the channel,
// or restarts the Ticker. If there is a callback, it returns the callback instead, and ok
// is true.
func (sh *shard) firePayloadLocked(p payload, tag uint8, at moment) (f func(), ok bool) {
	switch tag {
	case tagFunc:
		return p.callback(), true
	case tagLimited:
		sh.s.limit.release(1)
		return p.callback(), true
	case tagTicker:
		p.ticker().tickLocked(at)
	default:
		sendTime(p.channel(), at.time)
	}
	return nil, false
}

// deadlineAfter returns now + d, or never if the sum is too large.
func deadlineAfter(now int64, d time.Duration) int64 {
	if int64(d) > never-now {
		return never
	}
	return now + int64(d)
}

// defaultNumShards returns the default number of shards. Eight for each proc are faster
// than one, because stops and the poller need the locks too: see BenchmarkChurn. On many
// procs, more shards cost the poller more: see docs/scaling.md.
func defaultNumShards(procs int) int { return max(2*procs, min(8*procs, 64)) }

// spreadThreshold is how often starts must find the first shard locked before they use
// all shards.
const spreadThreshold = 256

// A shard with fullShardLen timers is full: starts go on to other shards, each proc after
// startsInFullShard starts. So even if one goroutine starts all timers, goroutines that
// stop and reset them seldom wait for the same lock: with 300,000 timers and two procs, a
// stop and a reset take half the time.
//
// But a shard more has buckets of its own, so firing takes more CPU. Therefore few timers
// stay together, and a proc that finds its shards full goes around four of them.
const (
	fullShardLen      = 64 << 10
	startsInFullShard = 1024
)

// A shardSet holds a Scheduler's shards, each made when it is first used.
//
// At first all timers start on the first shard. When it is full, or starts have found it
// locked spreadThreshold times, they use all shards: each proc keeps to one shard until the
// proc finds that shard locked or full. Then it goes on to another.
type shardSet struct {
	s          *Scheduler
	firstShard *shard
	byIndex    []atomic.Pointer[shard] // nil until the shard is made
	// usesAllShards is true if starts use all shards.
	usesAllShards atomic.Bool
	// procShards gives each proc a *procShard, if usesAllShards is true.
	procShards sync.Pool

	foundLockedCount atomic.Int32  // how many starts have found the first shard locked
	numProcShards    atomic.Uint32 // the number of procShards made
}

// A procShard holds the shard that a proc uses at present.
type procShard struct {
	sh         *shard
	startCount int // since sh was chosen
}

func (ss *shardSet) init(s *Scheduler) {
	ss.s = s
	ss.byIndex = make([]atomic.Pointer[shard], s.config.numShards)
	ss.procShards.New = func() any {
		return &procShard{sh: ss.shardAt(int(ss.numProcShards.Add(1)) % len(ss.byIndex))}
	}
	ss.firstShard = ss.shardAt(0)
}

// shardAt returns shard i, and makes it if necessary.
func (ss *shardSet) shardAt(i int) *shard {
	if sh := ss.byIndex[i].Load(); sh != nil {
		return sh
	}
	ss.byIndex[i].CompareAndSwap(nil, newShard(ss.s, i))
	return ss.byIndex[i].Load()
}

// existingShards returns the shards that have been made. It may miss a shard that is made
// meanwhile. Close need not find such a shard: starts on it return ErrClosed.
func (ss *shardSet) existingShards() iter.Seq[*shard] {
	return func(yield func(*shard) bool) {
		for i := range ss.byIndex {
			if sh := ss.byIndex[i].Load(); sh != nil && !yield(sh) {
				return
			}
		}
	}
}

// lockShard chooses and locks a shard for a new timer.
func (s *Scheduler) lockShard() *shard {
	ss := &s.shards
	if !ss.usesAllShards.Load() {
		if sh := ss.firstShard; sh.mu.TryLock() {
			if sh.wheel.Len() >= fullShardLen {
				ss.usesAllShards.Store(true)
			}
			return sh
		}
		return ss.lockSecondShard()
	}
	ps := ss.procShards.Get().(*procShard)
	sh := ps.sh
	if !sh.mu.TryLock() {
		// Another proc or the poller has locked this shard. Go on to the next shard,
		// which may have no other user.
		sh = ss.shardAfter(sh)
		ps.sh, ps.startCount = sh, 0
		sh.mu.Lock()
	}
	if ps.startCount++; ps.startCount >= startsInFullShard && sh.wheel.Len() >= fullShardLen {
		ps.sh, ps.startCount = ss.shardAt((sh.index+(len(ss.byIndex)+3)/4)%len(ss.byIndex)), 0
	}
	ss.procShards.Put(ps)
	return sh
}

// lockSecondShard locks the second shard, or the first if it is the only one. lockShard
// calls it if the first shard is locked.
func (ss *shardSet) lockSecondShard() *shard {
	if len(ss.byIndex) > 1 && ss.foundLockedCount.Add(1) >= spreadThreshold {
		ss.usesAllShards.Store(true)
	}
	sh := ss.shardAfter(ss.firstShard)
	sh.mu.Lock()
	return sh
}

// shardAfter returns the shard with the next index, or the first after the last.
func (ss *shardSet) shardAfter(sh *shard) *shard { return ss.shardAt((sh.index + 1) % len(ss.byIndex)) }
