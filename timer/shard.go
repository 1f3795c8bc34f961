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

// A shard is a timing wheel, and the lock that guards it and its timers. A timer stays
// with the shard that it was started on.
type shard struct {
	s     *Scheduler
	index int

	mu sync.Mutex
	// All below is guarded by mu.

	wheel *timingwheel.Wheel[payload]
	// wake is the earliest expiration of a bucket that became the first of the queue
	// since the lock was taken. unlock passes it to the poller. It is never if there is
	// no such bucket, and emptied if there is none and the last timer was removed.
	wake int64
	n    counts
	// trimmed is the value of n.started at the last call of trimLocked.
	trimmed   uint64
	fallbacks fallbacks
	// tickets has the queue's tickets of the buckets of upper levels, by place. They are
	// needed to replace a bucket that is offered again.
	tickets map[uint32]delayqueue.Ticket

	// timers is how many Timers the wheel holds. stopped lists those of them that were
	// stopped. It is set once, with the first Timer, and then read without the lock.
	timers  int
	stopped *stoppedTimers

	// The padding makes a shard four cache lines long. So a shard begins at a cache line,
	// and the locks of two shards are not in the same pair of lines.
	_ [96]byte
}

const (
	// never is a moment that does not come.
	never = math.MaxInt64
	// emptied stands for a moment to wake at, and means that a shard has lost its last
	// timer: see poller.wake. A timer may be due at that very moment, so all code accepts
	// it as a moment.
	emptied = never - 1
	// atOnce stands for a moment, and means that callbacks are ready for the poller.
	atOnce = 0
)

func newShard(s *Scheduler, index int) *shard {
	sh := &shard{s: s, index: index, wake: never}
	sh.wheel = newWheel(&s.config, timingwheel.WithQueue(sh.offer), timingwheel.WithPhase(shardPhase(&s.config, index)))
	return sh
}

// shardPhase returns the phase of a shard's wheel. It spreads the expiries of large
// slots, of the third level and above, over the slots of the second level. So different
// shards do not move timers down at the same moment, and need no wake-ups beyond those of
// the second level.
func shardPhase(c *config, index int) int64 {
	size := int64(c.wheelSize)
	return size * int64(index) / int64(c.shards) * size
}

func newWheel(c *config, opts ...timingwheel.Option) *timingwheel.Wheel[payload] {
	w, err := timingwheel.New[payload](int64(c.tick), c.wheelSize, 0, opts...)
	if err != nil {
		panic("timer: " + err.Error()) // newConfig has checked all arguments
	}
	return w
}

// offer queues a bucket. If the bucket is already queued, offer replaces it. The wheel
// calls offer with the shard's lock held.
func (sh *shard) offer(b bucket.Bucket, place uint32, expiration int64) {
	q := sh.s.queue
	upper := place >= uint32(sh.s.config.wheelSize) // buckets of the lowest level are offered only once
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

// unlock unlocks the shard and then wakes the poller if necessary.
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

// startLocked starts a timer. If the timer is already due, it fires at once, and
// startLocked returns the zero id. (A Ticker has then started itself again and set its
// own id.) The error is ErrClosed or, for tagLimited, ErrTooManyPending.
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
		// The timer is already due if another goroutine has read a later time and moved
		// the wheel's clock past the deadline, before this goroutine got the lock.
		if id, ok := sh.wheel.AddTagged(deadlineAfter(now, d), int64(slack), p, tag); ok {
			return id, nil
		}
	}
	sh.fireLocked(p, tag)
	return id, nil
}

// rearmLocked starts the timer of a Ticker again, from within its expiry. deadline must
// be after the moment that expireLocked was called with.
func (sh *shard) rearmLocked(now, deadline int64, t *Ticker) timingwheel.ID {
	slack := sh.slackOf(time.Duration(deadline - now))
	id, ok := sh.wheel.AddTagged(deadline, int64(slack), tickerPayload(t), tagTicker)
	if !ok {
		// A start has moved the wheel's clock to a later time than this expiry's, and
		// past the deadline: the Ticker fires at the next tick.
		id, _ = sh.wheel.AddTagged(sh.wheel.Clock()+1, 0, tickerPayload(t), tagTicker)
	}
	sh.n.started++
	return id
}

// removeLocked removes a timer from the wheel before it has fired.
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

// noteEmptiedLocked sets wake to emptied if a timer was removed and it was the last.
func (sh *shard) noteEmptiedLocked(ok bool) {
	// If recheck is set, the poller will search the queue after this lock is released:
	// see poller.wake.
	if ok && sh.wheel.Len() == 0 && !sh.s.poller.recheck.Load() {
		sh.wake = min(sh.wake, emptied)
	}
}

// stopLocked stops a timer. It reports false if there is none with that id.
func (sh *shard) stopLocked(id timingwheel.ID) bool {
	if _, ok := sh.removeLocked(id); !ok {
		return sh.stopFallbackLocked(id)
	}
	sh.n.stopped++
	return true
}

// resetLocked changes the deadline of a timer. It reports false if the wheel has none
// with that id.
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
	sh.fireLocked(p, withoutLimit(tag))
	return true
}

// fireLocked fires a timer that was due when it was started or reset.
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

// expireLocked does the part of firing that needs the lock: it sends on the channel, or
// rearms the ticker. If the timer has a callback, it returns the callback and true.
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

// defaultShards returns the default number of shards. One for each proc would be enough
// for starts, but stops and the poller need the locks too. BenchmarkChurn with n=1M/p=2
// takes 550 ns with two shards for each proc, 440 ns with four and 280 ns with eight. On
// many procs more shards cost the poller more than they gain: see docs/scaling.md.
func defaultShards(procs int) int { return max(2*procs, min(8*procs, 64)) }

// busyStarts is how many starts must find the first shard locked before starts are
// spread.
const busyStarts = 256

// shards has a Scheduler's shards. Each shard is made when it is first used.
//
// At first, timers start on the first shard: a shard in use takes memory, and for most
// programs one lock is enough. After busyStarts, starts spread over all shards. Each proc
// then uses one shard, mostly alone. If a proc finds its shard locked, it moves on to the
// next. So few shards are used if starts do not meet.
type shards struct {
	s     *Scheduler
	first *shard
	all   []atomic.Pointer[shard] // nil until the shard is made
	// spread is true if starts use all shards, and not only the first.
	spread atomic.Bool
	// tokens gives each P a *token after spread is set.
	tokens sync.Pool

	busy atomic.Int32  // how many starts have found the first shard locked
	last atomic.Uint32 // the number of tokens made
}

// token has the shard that a P uses.
type token struct{ sh *shard }

func (ss *shards) init(s *Scheduler) {
	ss.s = s
	ss.all = make([]atomic.Pointer[shard], s.config.shards)
	ss.tokens.New = func() any {
		return &token{ss.at(int(ss.last.Inc()) % len(ss.all))}
	}
	ss.first = ss.at(0)
}

// at returns shard i. It makes the shard if necessary.
func (ss *shards) at(i int) *shard {
	if sh := ss.all[i].Load(); sh != nil {
		return sh
	}
	ss.all[i].CompareAndSwap(nil, newShard(ss.s, i))
	return ss.all[i].Load()
}

// made returns an iterator over the shards that have been made. It may miss a shard that
// is made meanwhile. A caller that first stores a flag, as Close does with
// Scheduler.closed, does not need that shard: a start in it loads the flag after the
// store, because atomic operations have one total order.
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
		// Two Ps use this shard, or the poller drains it. If the next shard has no such
		// user, starts do not wait there.
		sh = ss.after(sh)
		t.sh = sh
		sh.mu.Lock()
	}
	ss.tokens.Put(t)
	return sh
}

// lockBusy is lockShard if the first shard is locked: it locks the next one, if there is
// one.
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
