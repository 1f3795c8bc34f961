package timer

import (
	"context"
	"runtime/trace"
	"slices"
	"sync"
	"time"
	"unsafe"

	"go.uber.org/atomic"

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
	// Expiring a bucket takes about as long as firing bucketCost timers.
	bucketCost = 16
	// watchAfter is how long the poller's goroutine may run callbacks before workers of
	// the pool take over the callbacks that wait.
	watchAfter = 2 * time.Millisecond
)

// poller expires buckets when they are due, and sleeps until the next one is. It has no
// goroutine of its own: the alarm calls it.
//
// While the poller is asleep, the alarm is set for the first expiration in the queue, or
// earlier. To ensure that, a goroutine that offers a new first bucket to the queue then
// calls wake. There are two cases, because the poller falls asleep under mu, and wake
// takes mu too:
//
//   - The poller is awake: wake lowers alarmAt, which the poller reads before it falls
//     asleep.
//   - The poller is asleep: wake sets the alarm.
type poller struct {
	s     *Scheduler
	alarm clock.Alarm

	mu    sync.Mutex
	awake bool
	// fellAsleep is closed when the poller falls asleep. It is nil if no goroutine waits
	// for that.
	fellAsleep chan struct{}
	// alarmAt is the time that the alarm is set for, or never. While the poller is awake,
	// alarmAt is the earliest time passed to wake, or never.
	alarmAt int64
	// mustRecheck is true if a shard has lost its last timer: within recheckAfter, the
	// poller must remove empty buckets from the queue. Changed only under mu.
	mustRecheck atomic.Bool
	// closed is true after the Scheduler is closed: no bucket will be queued any more.
	closed bool
	// While the poller's goroutine runs callbacks after a wake-up, watchedWakeup is the
	// number of that wake-up. Otherwise it is 0. To notice slow callbacks, the alarm goes
	// off within watchAfter. When the callbacks have returned, the alarm is set for
	// alarmAfterWatch.
	watchedWakeup   uint64
	alarmAfterWatch int64
	// hasWorkLeft is true if the poller fell asleep with work left: see sleepUnfinished.
	hasWorkLeft bool

	wakeups, emptyWakeups uint64

	// Only the goroutine on which the poller is awake uses the fields below.

	// dueShards lists the shards that have more expired timers to fire. moveShards lists
	// the shards whose remaining expired timers only move down a level.
	dueShards, moveShards shardList
	// expiredBuf has space for a batch while the poller works, and is nil otherwise.
	expiredBuf *expiredBatch
	// batch holds the callbacks that the poller has not submitted yet.
	batch batch
	// nextBucketAt is when the queue's first bucket was due when the poller last polled
	// the queue. For buckets that are offered later, wake lowers alarmAt.
	nextBucketAt int64
	// mayTrim is true if a shard may have lost its last timer: see trySleep.
	mayTrim bool
}

type expiredBatch [batchSize]timingwheel.Expired[payload]

var expiredBatches = sync.Pool{New: func() any { return new(expiredBatch) }}

func (p *poller) init(s *Scheduler) {
	p.s = s
	p.alarmAt = never
	if s.realTime {
		p.alarm = alarm.New(p.poll)
	} else {
		p.alarm = s.clock.NewAlarm(p.poll)
	}
}

// recheckAfter is how long the poller waits before it removes the empty buckets of a
// shard that has lost its last timer. While timers come and go one at a time, the poller
// thus need not set the alarm for each.
const recheckAfter = 20 * time.Millisecond

// wake makes the poller work at the given time, or earlier. The time may also be atOnce
// or shardEmptied. The caller must not hold a shard's lock.
//
// shardEmptied makes the poller remove empty buckets from the queue after recheckAfter.
// Otherwise the alarm would stay set for the bucket of a stopped timer.
func (p *poller) wake(at int64) {
	// The poller will search the queue for empty buckets: it clears mustRecheck before it
	// begins.
	if at == shardEmptied && p.mustRecheck.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && !p.s.dispatcher.hasReady() {
		return // the Scheduler was closed before
	}
	if p.awake {
		if at == shardEmptied {
			p.mustRecheck.Store(true)
		} else {
			p.alarmAt = min(p.alarmAt, at)
		}
		return
	}
	if at == shardEmptied {
		if p.s.inForeignBubble() {
			return // code in a bubble cannot set the alarm, so leave it
		}
		p.mustRecheck.Store(true)
		at = min(deadlineAfter(p.s.now(), recheckAfter), shardEmptied)
	}
	p.alarmAfterWatch = min(p.alarmAfterWatch, at)
	if at < p.alarmAt {
		now := p.s.moment()
		if at == atOnce {
			at = now.now // atOnce would make the alarm seem very late
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
	wakeup := p.wakeups
	p.startWatchdogLocked()
	p.mu.Unlock()
	p.run(wakeup, false)
}

// startWatchdogLocked makes workers of the pool run the callbacks that wait behind a slow
// callback.
func (p *poller) startWatchdogLocked() {
	if p.watchedWakeup != 0 {
		p.watchedWakeup = 0
		p.s.dispatcher.pool.Watch()
	}
}

// endWatch is called when the callbacks of a wake-up have returned. It sets the alarm for
// alarmAfterWatch.
func (p *poller) endWatch(wakeup uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchedWakeup != wakeup {
		return // the alarm has gone off meanwhile, or was stopped
	}
	p.watchedWakeup = 0
	if p.alarmAt != p.alarmAfterWatch {
		p.setAlarmLocked(p.s.moment(), p.alarmAfterWatch)
	}
}

// run works until nothing is due, or for maxWorkTime. Then it puts the poller to sleep,
// and runs the remaining callbacks. Meanwhile another goroutine can be the poller.
func (p *poller) run(wakeup uint64, worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.systemClock:
			// A callback on this goroutine has called runtime.Goexit. Another goroutine
			// goes on with the work.
			go p.run(wakeup, true)
		default:
			// A callback has ended the Advance of a virtual clock by a panic or Goexit.
			// The next Advance goes on with the work.
			p.sleepUnfinished()
		}
	}()
	var callbacks share.Work
	for at := p.s.moment(); !asleep; {
		region := trace.StartRegion(context.Background(), "timer.poll") // free unless tracing is on
		didWork, pause := p.work(at)
		region.End()
		worked = worked || didWork
		callbacks, at, asleep = p.trySleep(worked, pause)
	}
	callbacks.Run()
	if callbacks.Batch != nil {
		p.endWatch(wakeup)
	}
}

// sleepUnfinished puts the poller to sleep in the middle of its work. The work goes on when
// the clock is advanced again.
func (p *poller) sleepUnfinished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasWorkLeft = true
	now := p.s.moment()
	p.setAlarmLocked(now, now.now)
	p.fallAsleepLocked()
}

// fallAsleepLocked marks the poller as asleep. The caller has set the alarm.
func (p *poller) fallAsleepLocked() {
	if p.expiredBuf != nil {
		expiredBatches.Put(p.expiredBuf)
		p.expiredBuf = nil
	}
	p.awake = false
	if p.fellAsleep != nil {
		close(p.fellAsleep)
		p.fellAsleep = nil
	}
}

// wait waits until the poller is asleep. If ctx ends first, wait returns the error of
// ctx.
func (p *poller) wait(ctx context.Context) error {
	p.mu.Lock()
	if !p.awake {
		p.mu.Unlock()
		return nil
	}
	if p.fellAsleep == nil {
		p.fellAsleep = make(chan struct{})
	}
	asleep := p.fellAsleep
	p.mu.Unlock()
	return latch.Await(ctx, asleep)
}

// runRemaining runs the callbacks that a closed poller has not run. It does not wait for
// the alarm, because a virtual clock may stand still. If ctx ends first, it returns the
// error of ctx.
func (p *poller) runRemaining(ctx context.Context) error {
	for {
		// A callback may end the poller's goroutine again, so loop.
		if err := p.wait(ctx); err != nil {
			return err
		}
		if !p.s.dispatcher.hasReady() && !p.isUnfinished() {
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

func (p *poller) isUnfinished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasWorkLeft
}

// # The order of work
//
// A bucket of an upper level may hold a million timers that only move down a level. Due
// timers do not wait for these moves. The poller takes, in this order:
//
//  1. the next due bucket of the queue, with the first batch of its timers;
//  2. a batch from a shard that has more timers to fire;
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
//   - Callbacks run before moves. If callbacks wait and only moves are left, the poller
//     sets the alarm for now and falls asleep, and its goroutine runs the callbacks. When
//     the alarm goes off, the poller goes on with the moves.
//   - A few callbacks wake no other goroutine: they run on the poller's goroutine after
//     the poller has fallen asleep. If one takes long, the alarm goes off on another
//     goroutine.

// work does what is due at the moment at, and reports whether there was any work. If work
// is left, pause is how long the poller must wait before it goes on. Otherwise pause is
// negative.
func (p *poller) work(at moment) (worked bool, pause time.Duration) {
	serial := p.s.dispatcher.onlyPollerSubmits
	if serial {
		p.flush() // callbacks that an interrupted run has not submitted
	}
	p.nextBucketAt = 0
	begin := at.now
	for n := 0; ; {
		if serial || n >= batchSize {
			at, n = p.s.moment(), 0
		}
		if !serial && time.Duration(at.now-begin) > maxWorkTime {
			return worked, breakTime
		}
		if serial {
			p.batch.fs = p.s.dispatcher.takeReady(p.batch.fs)
			worked = worked || len(p.batch.fs) > 0
			p.flush()
		}
		sh, b, queued := p.nextShard(at.now, serial)
		if sh == nil {
			if len(p.batch.fs) > 0 && len(p.moveShards) > 0 {
				return worked, 0
			}
			if sh = p.moveShards.pop(); sh == nil {
				return worked, -1
			}
		}
		drained := p.drain(sh, b, queued, at)
		worked = worked || drained > 0
		n += drained + bucketCost
	}
}

// nextShard returns a shard to drain, or nil. If ok is true, b is a bucket of the shard
// to expire first. If serial is true, nextShard also returns shards that only have moves.
func (p *poller) nextShard(now int64, serial bool) (sh *shard, b dueBucket, ok bool) {
	if serial { // finish one bucket before the next
		if sh = p.dueShards.pop(); sh == nil {
			sh = p.moveShards.pop()
		}
		if sh != nil {
			return sh, b, false
		}
	}
	if now >= p.nextBucketAt { // trySleep finds buckets that are offered meanwhile
		if b, p.nextBucketAt, ok = p.s.queue.PollAt(now); ok {
			return b.sh, b, true
		}
	}
	return p.dueShards.pop(), b, false
}

// drain fires or moves down a batch of a shard's expired timers, and returns how many. If
// queued is true, it expires the bucket b first.
func (p *poller) drain(sh *shard, b dueBucket, queued bool, at moment) (drained int) {
	if p.expiredBuf == nil {
		p.expiredBuf = expiredBatches.Get().(*expiredBatch)
	}
	sh.mu.Lock()
	if queued {
		sh.wheel.Expire(b.bucket, b.expiration)
	}
	movedBefore := sh.wheel.Cascaded() + sh.counts.cascaded
	n, _ := sh.wheel.Drain(p.expiredBuf[:])
	firstNew := len(p.batch.fs)
	drained = p.fireLocked(sh, p.expiredBuf[:n], at) + int(sh.wheel.Cascaded()+sh.counts.cascaded-movedBefore)
	level, more := sh.wheel.Draining()
	p.mayTrim = p.mayTrim || sh.wheel.Len() == 0
	p.nextBucketAt = min(p.nextBucketAt, sh.wakeAt)
	sh.wakeAt = never
	sh.mu.Unlock()
	switch {
	case more && level == 0:
		p.dueShards.push(sh)
	case more:
		p.moveShards.push(sh)
	}
	prefetch(p.batch.fs[firstNew:])
	if len(p.batch.fs) >= submitSize || p.s.dispatcher.onlyPollerSubmits {
		p.flush()
	}
	return drained
}

// fireLocked fires timers that have left the wheel, adds their callbacks to p.batch, and
// returns how many have fired.
func (p *poller) fireLocked(sh *shard, expired []timingwheel.Expired[payload], at moment) int {
	if sh.stopped != nil {
		expired = sh.expireTimersLocked(expired)
	}
	for i := range expired {
		e := &expired[i]
		sh.counts.addFired(time.Duration(at.now - e.Due))
		if f, ok := sh.expireLocked(e.Value, e.Tag, at); ok {
			p.batch.fs = append(p.batch.fs, f)
		}
	}
	clear(expired)
	return len(expired)
}

func (p *poller) flush() {
	if len(p.batch.fs) == 0 {
		return
	}
	if d := &p.s.dispatcher; d.onlyPollerSubmits {
		p.batch.submitEach(d.submit)
	} else {
		d.submitBatch(&p.batch)
	}
}

// prefetch reads the closures of callbacks into the processor's cache. Reading many
// closures together is faster than reading each before its call. The result keeps the
// compiler from removing the reads.
//
//go:noinline
func prefetch(fs []func()) (sum uintptr) {
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
	next := min(p.nextBucketAt, p.alarmAt)
	switch {
	case pause >= 0:
		next = at.now + int64(pause)
	case next <= at.now:
		p.alarmAt = never
		return callbacks, at, false
	case !worked || next-at.now > int64(recheckAfter) || p.closed:
		p.mayTrim = p.mustRecheck.Swap(false) || p.mayTrim
		if next != never {
			next = p.discardEmptyLocked()
		}
	}
	if len(p.batch.fs) > 0 {
		callbacks = p.s.dispatcher.shareBatch(&p.batch)
	}
	if callbacks.Batch != nil {
		p.watchedWakeup, p.alarmAfterWatch = p.wakeups, next
		next = min(next, at.now+int64(watchAfter))
	}
	p.setAlarmLocked(at, next)
	if !worked {
		p.emptyWakeups++
	}
	if pause < 0 && (p.mayTrim || p.mustRecheck.Load()) {
		p.mayTrim = false
		p.s.trimmer.schedule()
	}
	p.fallAsleepLocked()
	return callbacks, at, true
}

// discardEmptyLocked removes empty buckets from the front of the queue, and returns when
// the first remaining bucket is due.
func (p *poller) discardEmptyLocked() (next int64) {
	for {
		due, ticket, at, ok := p.s.queue.Head()
		if !ok {
			return never
		}
		if !p.discardIfEmpty(due, ticket) {
			return at
		}
	}
}

// discardIfEmpty removes a bucket from the queue if it has no timers, and reports whether
// it did.
func (p *poller) discardIfEmpty(due dueBucket, ticket delayqueue.Ticket) bool {
	due.sh.mu.Lock()
	defer due.sh.mu.Unlock()
	if !due.sh.wheel.Discard(due.bucket) {
		return false
	}
	// Remove comes before unlocking: afterwards a start may offer the bucket again.
	p.s.queue.Remove(ticket)
	p.mayTrim = p.mayTrim || due.sh.wheel.Len() == 0
	return true
}

// close stops the alarm, because the queue is empty and stays so. If the poller still has
// work, shutdown stops the alarm later.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.hasWorkLeft && !p.s.dispatcher.hasReady() {
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
	if p.s.realTime {
		alarm.Release()
	}
}

// shutdown waits until a closed poller is asleep, and stops the alarm. It does not wait
// for other users' callbacks, which the poller's goroutine may still run for the pool.
func (p *poller) shutdown(ctx context.Context) error {
	err := p.wait(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopAlarmLocked()
	return err
}

func (p *poller) stats(st *Stats) {
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
