package timer

import (
	"math"
	"sync"
	"time"

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
	// tickets are those of queued buckets of upper levels, by place/ticketPage and
	// place%ticketPage: what is queued for one may have to be replaced.
	tickets []*[ticketPage]delayqueue.Ticket

	// timers is how many Timers the wheel holds, stopped those of them that were stopped. It
	// is made with the first of them, and not guarded then.
	timers  int
	stopped *stoppedTimers

	// It makes a shard four cache lines long: so it begins where a line does, and two shards'
	// locks are in no pair of lines.
	_ [80]byte
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

// ticketPage is how many tickets are made at a time.
const ticketPage = 32

// offer queues a bucket, in place of what is queued for it, if anything. The wheel
// calls it with the shard's lock held.
func (sh *shard) offer(b bucket.Bucket, place uint32, expiration int64) {
	q := sh.s.queue
	var ticket *delayqueue.Ticket
	if place >= uint32(sh.s.config.wheelSize) { // others are offered once
		ticket = sh.ticket(place)
		q.Remove(*ticket)
	}
	t, head := q.OfferAt(dueBucket{sh, b, expiration}, expiration)
	if ticket != nil {
		*ticket = t
	}
	if head {
		sh.wake = min(sh.wake, expiration)
	}
}

// ticket returns where the ticket of a bucket of an upper level is kept.
func (sh *shard) ticket(place uint32) *delayqueue.Ticket {
	page := int(place / ticketPage)
	for page >= len(sh.tickets) {
		sh.tickets = append(sh.tickets, nil)
	}
	if sh.tickets[page] == nil {
		sh.tickets[page] = new([ticketPage]delayqueue.Ticket)
	}
	return &sh.tickets[page][place%ticketPage]
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
	// The look, if it is still to come, comes after this hold of the lock: see
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
	sh.n.fired++
	sh.n.atOnce++
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
