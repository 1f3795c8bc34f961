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
	// batchSize bounds how many timers are expired or moved down while a shard's lock is
	// held, and so how long a start or a stop can wait for the lock.
	batchSize = 256
	// shareSize is how many callbacks the poller collects before it submits them to the
	// executor. Fewer callbacks it runs itself, after it has stopped being the poller.
	shareSize = 4 * batchSize
	// workAtMost bounds how long the poller works without a break. It is less than the 10
	// ms after which Go's scheduler preempts a goroutine and puts it at the end of the
	// global run queue, which would delay all timers. The break lasts for breakAfter, so
	// that other goroutines run. If one of them computes, it lasts until that goroutine
	// is preempted.
	workAtMost = 8 * time.Millisecond
	breakAfter = 100 * time.Microsecond
	// bucketCost is the cost of expiring a bucket, in timers.
	bucketCost = 16
	// watchAfter is how long callbacks on the poller's goroutine may take before the
	// alarm goes off and workers of the pool run those that wait.
	watchAfter = 2 * time.Millisecond
)

// poller expires buckets when they are due, and sleeps until the next one is. It is not a
// goroutine: the alarm calls it. So while nothing is pending, no goroutine exists.
//
// The poller is awake or asleep, and awake on one goroutine at a time. While it is
// asleep, the alarm is set for the first expiration in the queue or earlier. Two rules
// ensure that:
//
//   - A goroutine that queues a bucket offers it first, and then calls wake if the bucket is
//     the queue's first.
//   - The poller falls asleep in one critical section of mu, which wake takes too.
//
// So if the offer comes before the poller reads the queue, the poller sees the bucket. If
// it comes after, wake finds the poller either awake, and lowers armed, or asleep, and
// moves the alarm.
type poller struct {
	s     *Scheduler
	alarm clock.Alarm

	mu    sync.Mutex
	awake bool
	// asleep is closed when the poller falls asleep. It is nil unless a wait blocks.
	asleep chan struct{}
	// armed is the moment that the alarm is set for, or never. While the poller sleeps,
	// armed only moves earlier. While it is awake, armed is the earliest moment that wake
	// was called with.
	armed int64
	// recheck is true if a shard's last timer was removed since the poller last searched
	// the queue for buckets without timers. Then the alarm is set for within
	// recheckAfter. recheck changes under mu, and is read without mu: see wake.
	recheck atomic.Bool
	// closed is true if no bucket will be queued any more.
	closed bool
	// watched is the number of the wake-up whose callbacks still run, one after another,
	// or 0. Meanwhile the alarm is set for within watchAfter. When they have returned,
	// the alarm is set for afterWatch.
	watched    uint64
	afterWatch int64
	// unfinished is true if the poller was interrupted, and sleeps although there is
	// work.
	unfinished bool

	wakeups, emptyWakeups uint64

	// All below belongs to the goroutine that is awake.

	// due has the shards with expired timers to fire, moves the shards with expired
	// timers that only move down: see work.
	due, moves shardList
	// expired has room for a batch while the poller works, and is nil otherwise.
	expired *expiredBatch
	// batch has the callbacks that have not been submitted yet.
	batch batch
	// head is when the next bucket is due, among those in the queue at the last poll and
	// those that the poller has queued since.
	head int64
	// idle is true if a shard may have lost its last timer.
	idle bool
}

// expiredBatch is room for the timers of a batch.
type expiredBatch [batchSize]timingwheel.Expired[payload]

var expiredBatches = sync.Pool{New: func() any { return new(expiredBatch) }}

func (p *poller) init(s *Scheduler) {
	p.s = s
	p.armed = never
	if s.real {
		p.alarm = alarm.New(p.poll)
	} else {
		p.alarm = s.clock.NewAlarm(p.poll)
	}
}

// recheckAfter is how long the poller keeps its alarm after the last timer of a shard was
// removed. So timers that come and go, one at a time, do not set the alarm each time.
const recheckAfter = 20 * time.Millisecond

// wake makes the poller work at the given moment, if that is earlier than the alarm. If
// the moment is emptied, wake makes the poller check whether its next bucket has lost its
// timers. Otherwise a Scheduler with nothing pending would keep its alarm until the
// bucket of the last stopped timer expires. The caller must not hold a shard's lock.
func (p *poller) wake(at int64) {
	// The poller clears recheck before it searches the queue. If a caller finds recheck
	// set, after it has unlocked the shard, that search is still to come and will see the
	// shard.
	if at == emptied && p.recheck.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && !p.s.dispatch.hasReady() {
		return // Close came before the caller
	}
	if p.awake {
		if at == emptied {
			p.recheck.Store(true)
		} else {
			p.armed = min(p.armed, at)
		}
		return
	}
	if at == emptied {
		if p.s.isAway() {
			return // a bubble cannot set the alarm, which goes off as set before
		}
		p.recheck.Store(true)
		at = min(deadlineAfter(p.s.now(), recheckAfter), emptied)
	}
	p.afterWatch = min(p.afterWatch, at)
	if at < p.armed {
		now := p.s.moment()
		if at == atOnce {
			at = now.now // otherwise the alarm would count as late since the epoch
		}
		p.setAlarmLocked(now, at)
	}
}

func (p *poller) setAlarmLocked(now moment, at int64) {
	if p.armed = at; at == never {
		p.alarm.Stop()
		return
	}
	clock.ResetAt(p.alarm, now.time, p.s.at(at))
}

// poll is the alarm's function. If the alarm is moved while it goes off, it may call poll
// twice.
func (p *poller) poll() {
	p.mu.Lock()
	if p.awake {
		p.mu.Unlock()
		return
	}
	p.awake, p.unfinished = true, false
	p.armed = never
	p.wakeups++
	ring := p.wakeups
	p.watchLocked()
	p.mu.Unlock()
	p.run(ring, false)
}

// watchLocked makes the pool run callbacks that wait behind a slow one.
func (p *poller) watchLocked() {
	if p.watched != 0 {
		p.watched = 0
		p.s.dispatch.pool.Watch()
	}
}

// unwatch sets the alarm for afterWatch, when the callbacks of a wake-up have returned.
func (p *poller) unwatch(ring uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched != ring {
		return // the alarm has gone off since, or was stopped
	}
	p.watched = 0
	if p.armed != p.afterWatch {
		p.setAlarmLocked(p.s.moment(), p.afterWatch)
	}
}

// run works until nothing is due, or for workAtMost, and then falls asleep. After that,
// when another goroutine may be the poller, it runs the last callbacks itself.
func (p *poller) run(ring uint64, worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.system:
			// A callback ran on this goroutine and called runtime.Goexit. Another
			// goroutine continues.
			go p.run(ring, true)
		default:
			// The callback has ended the Advance of a virtual clock, by a panic or
			// Goexit. The next Advance continues.
			p.interrupted()
		}
	}()
	var callbacks share.Work
	for at := p.s.moment(); !asleep; {
		region := trace.StartRegion(context.Background(), "timer.poll") // free unless tracing is on
		didWork, pause := p.work(at)
		region.End()
		worked = worked || didWork
		callbacks, at, asleep = p.sleep(worked, pause)
	}
	callbacks.Run()
	if callbacks.Batch != nil {
		p.unwatch(ring)
	}
}

// interrupted puts the poller to sleep in the middle of its work, until the clock is
// advanced again.
func (p *poller) interrupted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfinished = true
	now := p.s.moment()
	p.setAlarmLocked(now, now.now)
	p.fallAsleepLocked()
}

// fallAsleepLocked ends the awake state.
func (p *poller) fallAsleepLocked() {
	if p.expired != nil {
		expiredBatches.Put(p.expired)
		p.expired = nil
	}
	p.awake = false
	if p.asleep != nil {
		close(p.asleep)
		p.asleep = nil
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
	if p.asleep == nil {
		p.asleep = make(chan struct{})
	}
	asleep := p.asleep
	p.mu.Unlock()
	return latch.Await(ctx, asleep)
}

// finish runs the callbacks that a closed poller has fired and not run yet, on goroutines
// of its own. It cannot wait for the alarm: only the caller advances a virtual clock. If
// ctx ends first, finish returns the error of ctx.
func (p *poller) finish(ctx context.Context) error {
	for {
		// The goroutine that is now the poller may be interrupted, too.
		if err := p.wait(ctx); err != nil {
			return err
		}
		if !p.s.dispatch.hasReady() && !p.wasInterrupted() {
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

func (p *poller) wasInterrupted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unfinished
}

// # The order of work
//
// Timers that are due come before those that only move down a level, whatever their
// shards: a bucket of an upper level may hold a million. Each round of work takes
//
//  1. the next bucket of the queue that is due, with the first batch of its timers: so
//     small buckets of upper levels, which are nearly all, keep their order;
//  2. or else a batch from a shard that has more timers to fire;
//  3. or else a batch from a shard that has more timers to move.
//
// A batch is one critical section of the shard's lock, and the shards alternate. A timer
// that falls due before it has moved fires when it is moved: then it may come after timers
// of later ticks. With dispatch.onPoller each bucket is worked through before the next is
// taken, and ticks come in order without exception.
//
// # Processors
//
// The runtime puts the goroutine of the alarm's timer in front of its proc's run queue, so
// it runs at once. runtime.Gosched would send it to the end of the global queue, and so does
// running for 10 ms. There it waits, beside n goroutines that compute on p procs, for n/p
// times 10 ms. Therefore:
//
//   - It never yields. After workAtMost it sets the alarm for a moment later and returns.
//     If callbacks wait and only moves are left it returns at once, and the alarm's next
//     ring goes on with the moves.
//   - It wakes no goroutine for a few callbacks. It runs them itself, after it has set the
//     alarm and fallen asleep: if one of them takes long, the next ring is on another
//     goroutine.
//   - On one proc, starts and stops wait for the poller for up to workAtMost. On more, they
//     wait for a batch in one shard, and not even that if the next shard's lock is free:
//     see lockShard.

// work does the work that is due at the present moment at. It reads the clock again after
// about batchSize timers. worked reports whether there was any work. If work has stopped
// early, pause is how long to wait before the rest; otherwise pause is negative.
func (p *poller) work(at moment) (worked bool, pause time.Duration) {
	serial := p.s.dispatch.onPoller
	if serial {
		p.flush() // callbacks that an interrupted run has not submitted
	}
	p.head = 0
	begin := at.now
	for n := 0; ; {
		if serial || n >= batchSize {
			at, n = p.s.moment(), 0
		}
		if !serial && time.Duration(at.now-begin) > workAtMost {
			return worked, breakAfter
		}
		if serial {
			p.batch.fs = p.s.dispatch.takeReady(p.batch.fs)
			worked = worked || len(p.batch.fs) > 0
			p.flush()
		}
		sh, b, queued := p.next(at.now, serial)
		if sh == nil {
			if len(p.batch.fs) > 0 && len(p.moves) > 0 {
				return worked, 0
			}
			if sh = p.moves.pop(); sh == nil {
				return worked, -1
			}
		}
		drained := p.drain(sh, b, queued, at)
		worked = worked || drained > 0
		n += drained + bucketCost
	}
}

// next returns the next shard that has work, or nil if there is none. If ok, b is a
// bucket of the shard that must be expired first.
func (p *poller) next(now int64, serial bool) (sh *shard, b dueBucket, ok bool) {
	if serial { // finish one bucket before the next
		if sh = p.due.pop(); sh == nil {
			sh = p.moves.pop()
		}
		if sh != nil {
			return sh, b, false
		}
	}
	if now >= p.head { // sleep sees buckets that are offered meanwhile
		if b, p.head, ok = p.s.queue.PollAt(now); ok {
			return b.sh, b, true
		}
	}
	return p.due.pop(), b, false
}

// drain processes a batch of a shard's expired timers. If queued, it first expires bucket
// b. It returns the number of timers processed.
func (p *poller) drain(sh *shard, b dueBucket, queued bool, at moment) (drained int) {
	if p.expired == nil {
		p.expired = expiredBatches.Get().(*expiredBatch)
	}
	sh.mu.Lock()
	if queued {
		sh.wheel.Expire(b.b, b.expiration)
	}
	before := sh.wheel.Cascaded() + sh.n.cascaded
	n, _ := sh.wheel.Drain(p.expired[:])
	collected := len(p.batch.fs)
	drained = p.fireLocked(sh, p.expired[:n], at) + int(sh.wheel.Cascaded()+sh.n.cascaded-before)
	level, more := sh.wheel.Draining()
	p.idle = p.idle || sh.wheel.Len() == 0
	p.head = min(p.head, sh.wake)
	sh.wake = never
	sh.mu.Unlock()
	switch {
	case more && level == 0:
		p.due.push(sh)
	case more:
		p.moves.push(sh)
	}
	prefetch(p.batch.fs[collected:])
	if len(p.batch.fs) >= shareSize || p.s.dispatch.onPoller {
		p.flush()
	}
	return drained
}

// fireLocked fires timers that have left the wheel, as far as the shard's lock is needed,
// and collects their callbacks in batch. It returns how many fire.
func (p *poller) fireLocked(sh *shard, expired []timingwheel.Expired[payload], at moment) int {
	if sh.stopped != nil {
		expired = sh.expireTimersLocked(expired)
	}
	for i := range expired {
		e := &expired[i]
		sh.n.fire(time.Duration(at.now - e.Due))
		if f, ok := sh.expireLocked(e.Value, e.Tag, at); ok {
			p.batch.fs = append(p.batch.fs, f)
		}
	}
	clear(expired)
	return len(expired)
}

// flush submits the batch.
func (p *poller) flush() {
	if len(p.batch.fs) == 0 {
		return
	}
	if h := &p.s.dispatch; h.onPoller {
		p.batch.each(h.submit)
	} else {
		h.batch(&p.batch)
	}
}

// prefetch reads the closures of callbacks, which are mostly not in the processor's cache.
// It reads many at a time, while calling one callback after another would wait for each. The
// result is meaningless, but keeps the compiler from removing the reads.
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

// sleep sets the alarm for the next bucket, or for after pause if there is more work. It
// reports false if something is already due. It returns the callbacks of the batch, for
// the caller to run afterwards, and its reading of the clock.
func (p *poller) sleep(worked bool, pause time.Duration) (callbacks share.Work, at moment, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.s.moment()
	next := min(p.head, p.armed)
	switch {
	case pause >= 0:
		next = at.now + int64(pause)
	case next <= at.now:
		p.armed = never
		return callbacks, at, false
	case !worked || next-at.now > int64(recheckAfter) || p.closed:
		p.idle = p.recheck.Swap(false) || p.idle
		if next != never {
			next = p.discardLocked()
		}
	}
	if len(p.batch.fs) > 0 {
		callbacks = p.s.dispatch.share(&p.batch)
	}
	if callbacks.Batch != nil {
		p.watched, p.afterWatch = p.wakeups, next
		next = min(next, at.now+int64(watchAfter))
	}
	p.setAlarmLocked(at, next)
	if !worked {
		p.emptyWakeups++
	}
	if pause < 0 && (p.idle || p.recheck.Load()) {
		p.idle = false
		p.s.trim.soon()
	}
	p.fallAsleepLocked()
	return callbacks, at, true
}

// discardLocked removes buckets without timers from the front of the queue, so that the
// alarm is not set for them. It returns when the first other bucket is due.
func (p *poller) discardLocked() (next int64) {
	for {
		due, ticket, at, ok := p.s.queue.Head()
		if !ok {
			return never
		}
		if !p.discard(due, ticket) {
			return at
		}
	}
}

// discard removes a bucket from the queue if it has no timers.
func (p *poller) discard(due dueBucket, ticket delayqueue.Ticket) bool {
	due.sh.mu.Lock()
	defer due.sh.mu.Unlock()
	if !due.sh.wheel.Discard(due.b) {
		return false
	}
	// The lock must be held: after the unlock, the bucket may be offered again.
	p.s.queue.Remove(ticket)
	p.idle = p.idle || due.sh.wheel.Len() == 0
	return true
}

// close stops the alarm, because the queue stays empty. If the poller still has work,
// shutdown stops the alarm.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.unfinished && !p.s.dispatch.hasReady() {
		p.stopAlarmLocked()
	}
}

// stopAlarmLocked stops the alarm. If the alarm is not set, it is not touched: it may
// belong to a bubble that has ended.
func (p *poller) stopAlarmLocked() {
	p.watchLocked() // the alarm will not go off again
	if p.armed != never {
		p.armed = never
		p.alarm.Stop()
	}
	if p.s.real {
		alarm.Release()
	}
}

// shutdown waits until a closed poller has done its work, and stops the alarm. The
// poller's goroutine may continue with other callbacks of the pool, for which shutdown
// does not wait.
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

// A shardList is a queue of shards without repetitions.
type shardList []*shard

func (l *shardList) push(sh *shard) {
	if !slices.Contains(*l, sh) {
		*l = append(*l, sh)
	}
}

// pop removes and returns the shard that has waited longest, or returns nil.
func (l *shardList) pop() *shard {
	if len(*l) == 0 {
		return nil
	}
	sh := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return sh
}
