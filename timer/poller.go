package timer

import (
	"context"
	"runtime/trace"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/internal/alarm"
	"github.com/tickless/tickless/internal/latch"
	"github.com/tickless/tickless/internal/share"
	"github.com/tickless/tickless/timingwheel"
)

const (
	// batchSize limits how many timers the poller fires or moves down a level while it
	// holds a shard's lock. Starts and stops wait for this lock.
	batchSize = 256
	// submitSize is how many callbacks the poller collects before it submits them. If
	// there are fewer, the poller falls asleep, and its goroutine runs them.
	submitSize = 4 * batchSize
	// The poller works for at most maxWorkTime, and then pauses for breakTime. After 10
	// ms, Go's scheduler would preempt it and put it behind all other goroutines.
	maxWorkTime = 8 * time.Millisecond
	breakTime   = 100 * time.Microsecond
	// While callbacks wait, the poller moves at most movesBeforeCallbacks timers down a
	// level: that takes 0.1 ms.
	movesBeforeCallbacks = 4 * batchSize
	// Expiring a bucket takes about as long as firing bucketCost timers. The poller takes up
	// to maxBuckets from the queue at a time. At 10,000 timers a second, about ten are due.
	bucketCost = 16
	maxBuckets = 32
	// watchAfter is how long the poller's goroutine may run callbacks before workers of
	// the pool take over the callbacks that wait.
	watchAfter = 2 * time.Millisecond
)

// poller expires buckets when they are due, and sleeps until the next one is. It has no
// goroutine of its own: the alarm calls it.
//
// While the poller is asleep, the alarm is set for the first expiration in the queue, or
// earlier. A goroutine that adds a bucket with an earlier expiration calls wake. The
// poller falls asleep under mu, and wake locks mu. So there are two cases:
//
//   - The poller is awake: wake lowers alarmAt, which the poller reads before it falls
//     asleep.
//   - The poller is asleep: wake sets the alarm.
type poller struct {
	s     *Scheduler
	alarm clock.Alarm

	mu    sync.Mutex
	awake bool
	// asleepCh is closed when the poller falls asleep. It is nil if no goroutine waits
	// for that.
	asleepCh chan struct{}
	// alarmAt is the time that the alarm is set for, or never. While the poller is awake,
	// alarmAt is the earliest time passed to wake, or never.
	alarmAt int64
	// mustDiscardEmpty is true if a shard has lost its last timer: within
	// discardEmptyDelay, the poller must remove empty buckets from the queue. Changed
	// only under mu.
	mustDiscardEmpty atomic.Bool
	// closed is true after the Scheduler is closed: no bucket will be queued any more.
	closed bool
	// While the poller's goroutine runs callbacks after a wake-up, watchedWakeup is the
	// number of that wake-up. Otherwise it is 0. To notice slow callbacks, the alarm goes
	// off within watchAfter. When the callbacks have returned, the alarm is set for
	// alarmTimeAfterWatch.
	watchedWakeup       uint64
	alarmTimeAfterWatch int64
	// hasWorkLeft is true if the poller fell asleep with work left: see
	// sleepWithWorkLeft.
	hasWorkLeft bool

	wakeups, emptyWakeups uint64

	// Only the goroutine on which the poller is awake uses the fields below.

	// shardsToFire lists the shards that have more expired timers to fire. shardsToMove
	// lists the shards whose remaining expired timers only move down a level.
	shardsToFire, shardsToMove shardList
	// expiredBuf has space for a batch while the poller works, and is nil otherwise.
	expiredBuf *expiredBatch
	// batch holds the callbacks that the poller has not submitted yet.
	batch callbackBatch
	// nextBucketAt is the expiration of the queue's first bucket, as of the last poll of
	// the queue. For buckets that are offered later, wake lowers alarmAt.
	nextBucketAt int64
	// shouldTrim is true if a shard may have lost its last timer: see trySleep.
	shouldTrim bool
}

type expiredBatch [batchSize]timingwheel.Expired[payload]

var expiredBatchPool = sync.Pool{New: func() any { return new(expiredBatch) }}

func (p *poller) init(s *Scheduler) {
	p.s = s
	p.alarmAt = never
	if s.usesRealTime {
		p.alarm = alarm.New(p.poll)
	} else {
		p.alarm = s.clock.NewAlarm(p.poll)
	}
}

// discardEmptyDelay is how long the poller waits before it removes the empty buckets of a
// shard that has lost its last timer. This saves work if another timer starts soon.
const discardEmptyDelay = 20 * time.Millisecond

// wake makes the poller work at the given time, or earlier. The time may also be atOnce
// or shardEmptied. The caller must not hold a shard's lock.
//
// shardEmptied makes the poller remove empty buckets from the queue after
// discardEmptyDelay. Otherwise the alarm would stay set for the bucket of a stopped
// timer.
func (p *poller) wake(at int64) {
	// If mustDiscardEmpty is still set, the poller has not yet begun to search the queue
	// for empty buckets, and will find this one too.
	if at == shardEmptied && p.mustDiscardEmpty.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && !p.s.dispatcher.hasReadyCallbacks() {
		return // the Scheduler was closed before
	}
	if p.awake {
		if at == shardEmptied {
			p.mustDiscardEmpty.Store(true)
		} else {
			p.alarmAt = min(p.alarmAt, at)
		}
		return
	}
	if at == shardEmptied {
		if p.s.inForeignBubble() {
			return // code in a bubble cannot set the alarm, so leave it
		}
		p.mustDiscardEmpty.Store(true)
		at = min(deadlineAfter(p.s.now(), discardEmptyDelay), shardEmptied)
	}
	p.alarmTimeAfterWatch = min(p.alarmTimeAfterWatch, at)
	if at < p.alarmAt {
		now := p.s.moment()
		if at == atOnce {
			at = now.nanos // atOnce would make the alarm seem very late
		}
		p.setAlarmLocked(now, at)
	}
}

func (p *poller) setAlarmLocked(now moment, at int64) {
	if p.alarmAt = at; at == never {
		p.alarm.Stop()
		return
	}
	clock.ResetAt(p.alarm, now.time, p.s.timeAt(at))
}

// poll is the alarm's function. If the alarm is set while it goes off, poll may be called
// twice.
func (p *poller) poll() {
	p.mu.Lock()
	if p.awake {
		p.mu.Unlock()
		return
	}
	p.awake, p.hasWorkLeft = true, false
	p.alarmAt = never
	p.wakeups++
	wakeupNumber := p.wakeups
	p.startWatchdogLocked()
	p.mu.Unlock()
	p.workUntilAsleep(wakeupNumber, false)
}

// startWatchdogLocked makes workers of the pool run the callbacks that wait behind a slow
// callback.
func (p *poller) startWatchdogLocked() {
	if p.watchedWakeup != 0 {
		p.watchedWakeup = 0
		p.s.dispatcher.sharePool.Watch()
	}
}

// endWatch is called when the callbacks of a wake-up have returned. It sets the alarm for
// alarmTimeAfterWatch.
func (p *poller) endWatch(wakeupNumber uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchedWakeup != wakeupNumber {
		return // the alarm has gone off meanwhile, or was stopped
	}
	p.watchedWakeup = 0
	if p.alarmAt != p.alarmTimeAfterWatch {
		p.setAlarmLocked(p.s.moment(), p.alarmTimeAfterWatch)
	}
}

// workUntilAsleep works until nothing is due, or for maxWorkTime. Then it puts the poller
// to sleep, and runs the remaining callbacks. While they run, another goroutine can be
// the poller.
func (p *poller) workUntilAsleep(wakeupNumber uint64, worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.usesSystemClock:
			// A callback on this goroutine has called runtime.Goexit. Another goroutine
			// goes on with the work.
			go p.workUntilAsleep(wakeupNumber, true)
		default:
			// A callback has ended the Advance of a virtual clock by a panic or Goexit.
			// The next Advance goes on with the work.
			p.sleepWithWorkLeft()
		}
	}()
	var callbacks share.Work
	for at := p.s.moment(); !asleep; {
		traceRegion := trace.StartRegion(context.Background(), "timer.poll") // free unless tracing is on
		didWork, pause := p.doDueWork(at)
		traceRegion.End()
		worked = worked || didWork
		callbacks, at, asleep = p.trySleep(worked, pause)
	}
	callbacks.Run()
	if callbacks.Batch != nil {
		p.endWatch(wakeupNumber)
	}
}

// sleepWithWorkLeft puts the poller to sleep in the middle of its work. The work goes on
// when the clock is advanced again.
func (p *poller) sleepWithWorkLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasWorkLeft = true
	now := p.s.moment()
	p.setAlarmLocked(now, now.nanos)
	p.fallAsleepLocked()
}

// fallAsleepLocked marks the poller as asleep. The caller has set the alarm.
func (p *poller) fallAsleepLocked() {
	if p.expiredBuf != nil {
		expiredBatchPool.Put(p.expiredBuf)
		p.expiredBuf = nil
	}
	p.awake = false
	if p.asleepCh != nil {
		close(p.asleepCh)
		p.asleepCh = nil
	}
}

// waitUntilAsleep waits until the poller is asleep. If ctx ends first, it returns the
// error of ctx.
func (p *poller) waitUntilAsleep(ctx context.Context) error {
	p.mu.Lock()
	if !p.awake {
		p.mu.Unlock()
		return nil
	}
	if p.asleepCh == nil {
		p.asleepCh = make(chan struct{})
	}
	asleepCh := p.asleepCh
	p.mu.Unlock()
	return latch.Await(ctx, asleepCh)
}

// runRemainingCallbacks runs the callbacks that a closed poller has not run. It does not
// wait for the alarm, because a virtual clock may stand still. If ctx ends first, it
// returns the error of ctx.
func (p *poller) runRemainingCallbacks(ctx context.Context) error {
	for {
		// A callback may end the poller's goroutine again, so loop.
		if err := p.waitUntilAsleep(ctx); err != nil {
			return err
		}
		if !p.s.dispatcher.hasReadyCallbacks() && !p.isWorkLeft() {
			return nil
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.poll()
		}()
		if err := latch.Await(ctx, done); err != nil {
			return err
		}
	}
}

func (p *poller) isWorkLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasWorkLeft
}

// # The order of work
//
// A bucket of an upper level may hold a million timers that only move down a level. Due
// timers do not wait for these moves. The poller takes, in this order:
//
//  1. the due buckets of the queue, some at a time, without their timers;
//  2. a batch from a shard that has such buckets, or more timers to fire;
//  3. a batch from a shard that has more timers to move. A timer that is due by now
//     fires, perhaps after timers of later ticks.
//
// If only the poller submits callbacks, it finishes each bucket before it takes the next.
// Then timers fire in the order of ticks.
//
// # Processors
//
// The runtime runs the alarm's goroutine immediately. If a goroutine yields, or runs for
// 10 ms, it goes to the end of the global run queue. If many goroutines compute, it waits
// there for tens of milliseconds. Therefore:
//
//   - The poller never yields. After maxWorkTime it sets the alarm for breakTime later,
//     and falls asleep.
//   - Callbacks wait for few moves. If callbacks wait and only moves are left, the poller
//     moves up to movesBeforeCallbacks timers. Then it sets the alarm for now and falls
//     asleep, and its goroutine runs the callbacks. When the alarm goes off, the poller
//     goes on with the moves. Without these moves, a load that always has callbacks would
//     put off the moves until the moved timers are late.
//   - A few callbacks wake no other goroutine: they run on the poller's goroutine after
//     the poller has fallen asleep. If a callback takes long, the alarm goes off on
//     another goroutine.

// doDueWork does the work that is due at the given time, and reports whether there was
// any. If work is left, pause is how long the poller must wait before it goes on.
// Otherwise pause is negative.
func (p *poller) doDueWork(at moment) (worked bool, pause time.Duration) {
	inTickOrder := p.s.dispatcher.onlyPollerSubmits
	if inTickOrder {
		p.submitBatch() // callbacks that an interrupted run has not submitted
	}
	p.nextBucketAt = 0
	startNanos := at.nanos
	movesLeft := movesBeforeCallbacks
	for n := 0; ; {
		if inTickOrder || n >= batchSize {
			at, n = p.s.moment(), 0
		}
		if !inTickOrder && time.Duration(at.nanos-startNanos) > maxWorkTime {
			return worked, breakTime
		}
		if inTickOrder {
			p.batch.callbacks = p.s.dispatcher.takeReadyCallbacks(p.batch.callbacks)
			worked = worked || len(p.batch.callbacks) > 0
			p.submitBatch()
		}
		n += bucketCost * p.expireDueBuckets(at.nanos, inTickOrder)
		sh := p.shardsToFire.pop()
		if sh == nil {
			if len(p.batch.callbacks) > 0 && len(p.shardsToMove) > 0 {
				if movesLeft == 0 {
					return worked, 0
				}
				movesLeft -= batchSize
			}
			if sh = p.shardsToMove.pop(); sh == nil {
				return worked, -1
			}
		}
		numDrained := p.drainShard(sh, at)
		worked = worked || numDrained > 0
		n += numDrained
	}
}

// expireDueBuckets takes due buckets out of the queue and expires them, so that drainShard
// finds their timers. It returns how many. If inTickOrder is true, it takes one bucket, and
// only if all timers of earlier buckets have left their wheels or moved down.
func (p *poller) expireDueBuckets(now int64, inTickOrder bool) (n int) {
	if now < p.nextBucketAt { // trySleep finds buckets that are offered meanwhile
		return 0
	}
	var buf [maxBuckets]queuedBucket
	due := buf[:]
	if inTickOrder {
		if len(p.shardsToFire)+len(p.shardsToMove) > 0 {
			return 0
		}
		due = buf[:1]
	}
	n, p.nextBucketAt = p.s.queue.PollAt(now, due)
	for due = due[:n]; len(due) > 0; {
		sh := due[0].sh
		sh.mu.Lock()
		for ; len(due) > 0 && due[0].sh == sh; due = due[1:] {
			sh.wheel.Expire(due[0].bucket, due[0].expiration)
		}
		sh.mu.Unlock()
		p.shardsToFire.push(sh)
	}
	return n
}

// drainShard fires or moves down a batch of a shard's expired timers, and returns how
// many.
func (p *poller) drainShard(sh *shard, at moment) (numDrained int) {
	if p.expiredBuf == nil {
		p.expiredBuf = expiredBatchPool.Get().(*expiredBatch)
	}
	sh.mu.Lock()
	cascadesBefore := sh.wheel.Cascaded() + sh.counts.cascaded
	n, _ := sh.wheel.Drain(p.expiredBuf[:])
	firstNewIndex := len(p.batch.callbacks)
	numDrained = p.fireExpiredLocked(sh, p.expiredBuf[:n], at) + int(sh.wheel.Cascaded()+sh.counts.cascaded-cascadesBefore)
	level, hasMore := sh.wheel.Draining()
	p.shouldTrim = p.shouldTrim || sh.wheel.Len() == 0
	p.nextBucketAt = min(p.nextBucketAt, sh.wakeAt)
	sh.wakeAt = never
	sh.mu.Unlock()
	switch {
	case hasMore && level == 0:
		p.shardsToFire.push(sh)
	case hasMore:
		p.shardsToMove.push(sh)
	}
	prefetchClosures(p.batch.callbacks[firstNewIndex:])
	if len(p.batch.callbacks) >= submitSize || p.s.dispatcher.onlyPollerSubmits {
		p.submitBatch()
	}
	return numDrained
}

// fireExpiredLocked fires timers that have left the wheel, adds their callbacks to
// p.batch, and returns how many have fired.
func (p *poller) fireExpiredLocked(sh *shard, expired []timingwheel.Expired[payload], at moment) int {
	if sh.stoppedTimers != nil {
		expired = sh.expireTimersLocked(expired)
	}
	for i := range expired {
		e := &expired[i]
		sh.counts.countFired(time.Duration(at.nanos - e.Due))
		if f, ok := sh.firePayloadLocked(e.Value, e.Tag, at); ok {
			p.batch.callbacks = append(p.batch.callbacks, f)
		}
	}
	clear(expired)
	return len(expired)
}

func (p *poller) submitBatch() {
	if len(p.batch.callbacks) == 0 {
		return
	}
	if d := &p.s.dispatcher; d.onlyPollerSubmits {
		p.batch.submitAll(d.submit)
	} else {
		d.submitBatch(&p.batch)
	}
}

// prefetchClosures reads the closures of callbacks into the processor's cache. Reading
// many closures together is faster than reading each before its call. The result keeps
// the compiler from removing the reads.
//
//go:noinline
func prefetchClosures(fs []func()) (sum uintptr) {
	for _, f := range fs {
		if f != nil {
			sum += **(**uintptr)(unsafe.Pointer(&f))
		}
	}
	return sum
}

// trySleep sets the alarm and puts the poller to sleep. The caller must then run the
// callbacks. If a timer is already due, the poller stays awake, and ok is false.
func (p *poller) trySleep(worked bool, pause time.Duration) (callbacks share.Work, at moment, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.s.moment()
	nextAlarmAt := min(p.nextBucketAt, p.alarmAt)
	switch {
	case pause >= 0:
		nextAlarmAt = at.nanos + int64(pause)
	case nextAlarmAt <= at.nanos:
		p.alarmAt = never
		return callbacks, at, false
	case !worked || nextAlarmAt-at.nanos > int64(discardEmptyDelay) || p.closed:
		p.shouldTrim = p.mustDiscardEmpty.Swap(false) || p.shouldTrim
		if nextAlarmAt != never {
			nextAlarmAt = p.discardEmptyBucketsLocked()
		}
	}
	if len(p.batch.callbacks) > 0 {
		callbacks = p.s.dispatcher.shareBatch(&p.batch)
	}
	if callbacks.Batch != nil {
		p.watchedWakeup, p.alarmTimeAfterWatch = p.wakeups, nextAlarmAt
		nextAlarmAt = min(nextAlarmAt, at.nanos+int64(watchAfter))
	}
	p.setAlarmLocked(at, nextAlarmAt)
	if !worked {
		p.emptyWakeups++
	}
	if pause < 0 && (p.shouldTrim || p.mustDiscardEmpty.Load()) {
		p.shouldTrim = false
		p.s.trimmer.scheduleTrim()
	}
	p.fallAsleepLocked()
	return callbacks, at, true
}

// discardEmptyBucketsLocked removes empty buckets from the front of the queue, and
// returns when the first remaining bucket is due.
func (p *poller) discardEmptyBucketsLocked() (nextBucketAt int64) {
	for {
		b, ticket, at, ok := p.s.queue.Head()
		if !ok {
			return never
		}
		if !p.discardBucketIfEmpty(b, ticket) {
			return at
		}
	}
}

// discardBucketIfEmpty removes a bucket from the queue if it has no timers, and reports
// whether it did.
func (p *poller) discardBucketIfEmpty(b queuedBucket, ticket delayqueue.Ticket) bool {
	b.sh.mu.Lock()
	defer b.sh.mu.Unlock()
	if !b.sh.wheel.Discard(b.bucket) {
		return false
	}
	// Remove comes before unlocking: afterwards a start may offer the bucket again.
	p.s.queue.Remove(ticket)
	p.shouldTrim = p.shouldTrim || b.sh.wheel.Len() == 0
	return true
}

// close stops the alarm, because the queue is empty and stays so. If the poller still has
// work, shutdown stops the alarm later.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.hasWorkLeft && !p.s.dispatcher.hasReadyCallbacks() {
		p.stopAlarmLocked()
	}
}

// stopAlarmLocked stops the alarm. It does not touch an alarm that is not set, because
// that may belong to a bubble that has ended.
func (p *poller) stopAlarmLocked() {
	p.startWatchdogLocked() // the alarm will not go off again
	if p.alarmAt != never {
		p.alarmAt = never
		p.alarm.Stop()
	}
	if p.s.usesRealTime {
		alarm.Release()
	}
}

// shutdown waits until a closed poller is asleep, and stops the alarm. It does not wait
// for other users' callbacks, which the poller's goroutine may still run for the pool.
func (p *poller) shutdown(ctx context.Context) error {
	err := p.waitUntilAsleep(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopAlarmLocked()
	return err
}

func (p *poller) fillStats(st *Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Wakeups, st.EmptyWakeups = p.wakeups, p.emptyWakeups
}

// A shardList is a queue of shards. No shard is in it twice.
type shardList []*shard

func (l *shardList) push(sh *shard) {
	if !slices.Contains(*l, sh) {
		*l = append(*l, sh)
	}
}

// pop removes the shard that has waited longest, and returns it. It returns nil if the
// list is empty.
func (l *shardList) pop() *shard {
	if len(*l) == 0 {
		return nil
	}
	sh := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return sh
}
