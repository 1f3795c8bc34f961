package timer

import (
	"iter"
	"math"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/bucket"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/timingwheel"
)

// A shard is one timing wheel and the lock that guards it and every timer in
// it. A timer stays with the shard that it was started on.
type shard struct {
	s     *Scheduler
	index int

	mu sync.Mutex
	// All below is guarded by mu.

	wheel *timingwheel.Wheel[payload]
	// wake is the earliest expiration of a bucket that was queued, as the
	// queue's head, since the lock was taken: whoever unlocks the shard tells
	// the poller. never if there is none; emptied if there is none and the last
	// timer was taken out.
	wake int64
	n    counts
	// trimmed is what n.started was when trimLocked was last called.
	trimmed   uint64
	fallbacks fallbacks
	// tickets are those of queued buckets of upper levels, by place: what is queued for one
	// may have to be replaced.
	tickets map[uint32]delayqueue.Ticket

	// timers is how many Timers the wheel holds, stopped those of them that were stopped. It
	// is made with the first of them, and not guarded then.
	timers  int
	stopped *stoppedTimers

	// It makes a shard four cache lines long: so it begins where a line does, and two shards'
	// locks are in no pair of lines.
	_ [96]byte
}

const (
	// never is a moment that does not come.
	never = math.MaxInt64
	// emptied, in place of a moment to wake at, says that a shard has lost its
	// last timer: see poller.wake. A timer may be due at it all the same, so it is
	// treated as one would be.
	emptied = never - 1
	// atOnce, in place of a moment, says that callbacks are ready for the poller.
	atOnce = 0
)

func newShard(s *Scheduler, index int) *shard {
	sh := &shard{s: s, index: index, wake: never}
	sh.wheel = newWheel(&s.config, timingwheel.WithQueue(sh.offer), timingwheel.WithPhase(shardPhase(&s.config, index)))
	return sh
}

// shardPhase keeps the shards from sending down the large slots of the third level and
// above at the same moment: it spreads them over the second level's slots, so that
// the wake-ups that this takes are those of the second level anyway.
func shardPhase(c *config, index int) int64 {
	size := int64(c.wheelSize)
	return size * int64(index) / int64(c.shards) * size
}

func newWheel(c *config, opts ...timingwheel.Option) *timingwheel.Wheel[payload] {
	w, err := timingwheel.New[payload](int64(c.tick), c.wheelSize, 0, opts...)
	if err != nil {
		panic("timer: " + err.Error()) // newConfig has looked at all of it
	}
	return w
}

// offer queues a bucket, in place of what is queued for it, if anything. The wheel
// calls it with the shard's lock held.
func (sh *shard) offer(b bucket.Bucket, place uint32, expiration int64) {
	q := sh.s.queue
	upper := place >= uint32(sh.s.config.wheelSize) // those of the lowest level are offered once
	if upper {
		q.Remove(sh.tickets[place])
	}
	ticket, head := q.OfferAt(dueBucket{sh, b, expiration}, expiration)
	if upper {
		if sh.tickets == nil {
			sh.tickets = make(map[uint32]delayqueue.Ticket)
		}
		sh.tickets[place] = ticket
	}
	if head {
		sh.wake = min(sh.wake, expiration)
	}
}

// unlock releases the shard and then tells the poller what it has to know.
func (sh *shard) unlock() {
	if sh.wake != never {
		sh.unlockAndWake()
		return
	}
	sh.mu.Unlock()
}

func (sh *shard) unlockAndWake() {
	wake := sh.wake
	sh.wake = never
	sh.mu.Unlock()
	sh.s.poller.wake(wake)
}

// slackOf returns the Scheduler's slack for a delay.
func (sh *shard) slackOf(d time.Duration) time.Duration { return sh.s.config.slack.of(d) }

// startLocked starts a timer. If it is due already it fires at once. The zero id
// names no timer: that is what a timer that fired at once gets, unless it has started
// itself again. The error is ErrClosed or, of one with tagLimited, ErrTooManyPending.
func (sh *shard) startLocked(now int64, d, slack time.Duration, p payload, tag uint8) (id timingwheel.ID, err error) {
	if sh.s.closed.Load() {
		return id, ErrClosed
	}
	if tag == tagLimited && !sh.s.limit.take() {
		sh.n.rejectedFull++
		return id, ErrTooManyPending
	}
	sh.n.started++
	if d > 0 {
		sh.wheel.Observe(now)
		// It is due all the same if another goroutine has read a later time and
		// moved the wheel past this deadline, while this one was on its way to
		// the lock.
		if id, ok := sh.wheel.AddTagged(deadlineAfter(now, d), int64(slack), p, tag); ok {
			return id, nil
		}
	}
	sh.fireLocked(p, tag)
	return id, nil
}

// rearmLocked starts a Ticker's timer again while it expires, to fire at a moment after
// the one that expireLocked was given.
func (sh *shard) rearmLocked(now, deadline int64, t *Ticker) timingwheel.ID {
	slack := sh.slackOf(time.Duration(deadline - now))
	id, ok := sh.wheel.AddTagged(deadline, int64(slack), tickerPayload(t), tagTicker)
	if !ok {
		// A start has told the wheel of a later moment than the ring's, by which the
		// deadline has passed: it fires with the next tick.
		id, _ = sh.wheel.AddTagged(sh.wheel.Clock()+1, 0, tickerPayload(t), tagTicker)
	}
	sh.n.started++
	return id
}

// removeLocked takes a timer out of the wheel before its time.
func (sh *shard) removeLocked(id timingwheel.ID) (p payload, ok bool) {
	if sh.s.limit != nil {
		if tag, ok := sh.wheel.Tag(id); ok && tag == tagLimited {
			sh.s.limit.give(1)
		}
	}
	p, ok = sh.wheel.Remove(id)
	sh.noteEmptiedLocked(ok)
	return p, ok
}

// noteEmptiedLocked has the poller told if a timer was taken out and it was the last.
func (sh *shard) noteEmptiedLocked(ok bool) {
	// If recheck is set, the poller searches the queue after this lock is free: see
	// poller.wake.
	if ok && sh.wheel.Len() == 0 && !sh.s.poller.recheck.Load() {
		sh.wake = min(sh.wake, emptied)
	}
}

// stopLocked takes a timer out. It reports false if there is none of that id.
func (sh *shard) stopLocked(id timingwheel.ID) bool {
	if _, ok := sh.removeLocked(id); !ok {
		return sh.stopFallbackLocked(id)
	}
	sh.n.stopped++
	return true
}

// resetLocked gives a timer another deadline. It reports false if there is none
// of that id in the wheel.
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
	sh.fireLocked(p, untag(tag))
	return true
}

// fireLocked fires a timer that was found due by who started or reset it.
func (sh *shard) fireLocked(p payload, tag uint8) {
	sh.n.fire(0)
	var at moment
	if tag != tagFunc {
		at = sh.s.moment()
	}
	if f, ok := sh.expireLocked(p, tag, at); ok {
		sh.s.dispatch.submitDueLocked(sh, f)
	}
}

// expireLocked does for a fired timer what is done under the lock, and returns
// what is left for the executor, if anything.
func (sh *shard) expireLocked(p payload, tag uint8, at moment) (f func(), ok bool) {
	switch tag {
	case tagFunc:
		return p.fn(), true
	case tagLimited:
		sh.s.limit.give(1)
		return p.fn(), true
	case tagTicker:
		p.ticker().tickLocked(at)
	default:
		sendTime(p.channel(), at.time)
	}
	return nil, false
}

// deadlineAfter adds a delay to a moment. The sum saturates.
func deadlineAfter(now int64, d time.Duration) int64 {
	if int64(d) > never-now {
		return never
	}
	return now + int64(d)
}

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
