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
	// batchSize bounds how many timers are expired or cascaded in one hold of a
	// shard's lock, and so how long a start or a stop can wait for it.
	batchSize = 256
	// shareSize is how many callbacks the poller collects before it wakes others to
	// run them. Fewer it runs itself, once it is the poller no more.
	shareSize = 4 * batchSize
	// workAtMost is how long the poller works at a stretch, if that is what it takes:
	// less than the 10 ms after which Go's scheduler sends a goroutine to the end of the
	// global run queue, and the poller's role with it. Then it leaves the procs to
	// others for breakAfter: on one that computes, until that is sent to the end of the
	// queue.
	workAtMost = 8 * time.Millisecond
	breakAfter = 100 * time.Microsecond
	// bucketCost is what it takes to expire a bucket, in timers.
	bucketCost = 16
	// watchAfter is how long callbacks may take until a ring of the alarm has the pool run
	// those behind them.
	watchAfter = 2 * time.Millisecond
)

// poller expires buckets when they are due, and sleeps in between, until the
// first one is. It is not a goroutine but what the alarm runs: while nothing is
// pending there is nothing left of it.
//
// It is awake or asleep, and awake at most once at a time. Asleep, the alarm is
// set for the first expiration in the queue or earlier. What keeps this so:
//
//   - A goroutine that queues a bucket offers it first, and then, if it is the queue's
//     head, calls wake.
//   - The poller falls asleep in one critical section of mu, which wake takes too.
//
// So if the offer comes before the poller looks at the queue, the poller sees it. If it
// comes after, wake either finds the poller awake, and tells it the moment by armed, or
// asleep, and moves the alarm.
type poller struct {
	s     *Scheduler
	alarm clock.Alarm

	mu    sync.Mutex
	awake bool
	// asleep is closed when it falls asleep; nil if nobody waits for that.
	asleep chan struct{}
	// armed is what the alarm is set for, never if it is not. While the poller
	// sleeps it only moves earlier. While it is awake, armed is the earliest moment
	// that wake was called with.
	armed int64
	// recheck: a shard's last timer was taken out, since the poller last searched the queue
	// for buckets without timers. Then the alarm is set for within recheckAfter. It changes
	// under mu, and is read without: see wake.
	recheck atomic.Bool
	// closed: nothing will be queued any more.
	closed bool
	// watched is the wake-up whose callbacks still run, one after another, or 0. Meanwhile the
	// alarm is set for within watchAfter. Once they have returned it is set for afterwards.
	watched    uint64
	afterwards int64
	// unfinished: it was interrupted, and sleeps with work at hand.
	unfinished bool

	wakeups, emptyWakeups uint64

	// All below belongs to the goroutine that is awake.

	// due are the shards with expired timers that are to be fired, moves others with timers
	// that are only to be moved down: see work.
	due, moves shardList
	// expired has room for a batch, or is nil. It is kept only while work is done.
	expired *expiredBatch
	// batch are callbacks on their way to the executor.
	batch batch
	// head is when the next bucket is due, of those that were in the queue at the last poll
	// and those that the poller has queued since.
	head int64
	// idle: a shard may have lost its last timer.
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

// recheckAfter is how long the poller goes on sleeping on a bucket after the last
// timer of its shard was taken out: long enough that timers which come and go,
// one at a time, do not set the alarm each time.
const recheckAfter = 20 * time.Millisecond

// wake tells the poller that something is due at a moment, if that is earlier
// than what it knows. If the moment is emptied it tells the poller instead that
// what it sleeps on may be gone: without that, a Scheduler with nothing pending
// would keep its alarm, and what that holds, until the bucket of the timer that
// was stopped last would have expired. No shard may be locked.
func (p *poller) wake(at int64) {
	// The poller clears recheck before it searches the queue. So a caller that finds it set,
	// after the shard was unlocked, comes before a search that will see the shard.
	if at == emptied && p.recheck.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed && !p.s.dispatch.hasReady() {
		return // Close has overtaken the caller
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
		if p.s.isElsewhere() {
			return // nobody can set the alarm from there: it rings when it would have
		}
		p.recheck.Store(true)
		at = min(deadlineAfter(p.s.now(), recheckAfter), emptied)
	}
	p.afterwards = min(p.afterwards, at)
	if at < p.armed {
		now := p.s.moment()
		if at == atOnce {
			at = now.now // or the alarm would count as late since the epoch
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

// poll is the alarm's function. An alarm that was moved just as it rang may
// call it twice.
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

// watchLocked makes the pool run the callbacks that wait behind one that takes long.
func (p *poller) watchLocked() {
	if p.watched != 0 {
		p.watched = 0
		p.s.dispatch.pool.Watch()
	}
}

// unwatch sets the alarm for what comes next, now that the callbacks of a wake-up have
// returned.
func (p *poller) unwatch(ring uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched != ring {
		return // it has rung since, or was stopped
	}
	p.watched = 0
	if p.armed != p.afterwards {
		p.setAlarmLocked(p.s.moment(), p.afterwards)
	}
}

// run works until nothing is due, or for workAtMost, then falls asleep. After that, when
// another goroutine may be the poller, it runs the last callbacks itself.
func (p *poller) run(ring uint64, worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.system:
			// A callback that ran on this goroutine has ended it, with
			// runtime.Goexit. Another takes over where it stopped.
			go p.run(ring, true)
		default:
			// Or it has ended the advancing of a clock, also by a panic. The next
			// one goes on where this one stopped.
			p.interrupted()
		}
	}()
	var callbacks share.Work
	for at := p.s.moment(); !asleep; {
		region := trace.StartRegion(context.Background(), "timer.poll") // costs nothing unless tracing is on
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

// interrupted puts the poller to sleep in the middle of its work, until the clock
// is advanced again.
func (p *poller) interrupted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfinished = true
	now := p.s.moment()
	p.setAlarmLocked(now, now.now)
	p.fallAsleepLocked()
}

// fallAsleepLocked is the end of being awake.
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

// wait waits until the poller is asleep, or returns ctx's error if that ends first.
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

// finish runs what a closed poller has fired and not run yet, on goroutines of its own. It
// cannot wait for the alarm: only the caller advances a virtual clock. It returns ctx's error
// if that ends first.
func (p *poller) finish(ctx context.Context) error {
	for {
		// The goroutine that is the poller now may be interrupted, too.
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

// work does what is due at a moment that was read just now. It reads the clock again after
// about batchSize timers. It reports whether there was anything, and after how long it is to go on
// if it has stopped before the end; negative if it has not.
func (p *poller) work(at moment) (worked bool, pause time.Duration) {
	serial := p.s.dispatch.onPoller
	if serial {
		p.flush() // what a run that ended in the middle did not come to
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

// next returns the next shard that has something due, nil if there is none; and its
// bucket, if one is yet to be expired.
func (p *poller) next(now int64, serial bool) (sh *shard, b dueBucket, ok bool) {
	if serial { // one bucket after another
		if sh = p.due.pop(); sh == nil {
			sh = p.moves.pop()
		}
		if sh != nil {
			return sh, b, false
		}
	}
	if now >= p.head { // what others offer meanwhile, sleep sees
		if b, p.head, ok = p.s.queue.PollAt(now); ok {
			return b.sh, b, true
		}
	}
	return p.due.pop(), b, false
}

// drain works through a batch of a shard's expired timers, after those of bucket b,
// if it is queued, have joined them. It returns how many there were.
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
	touch(p.batch.fs[collected:])
	if len(p.batch.fs) >= shareSize || p.s.dispatch.onPoller {
		p.flush()
	}
	return drained
}

// fireLocked does for timers that left the wheel what is done under the shard's
// lock, and collects their callbacks in batch. It returns how many fire.
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

// flush hands the batch over, or runs it.
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

// touch brings callbacks, which are cold as a rule, near to the processor: many at a
// time, where to call one after the other would wait for each. What it returns is of no
// meaning, but keeps the compiler from leaving the loads out.
//
//go:noinline
func touch(fs []func()) (sum uintptr) {
	for _, f := range fs {
		if f != nil {
			sum += **(**uintptr)(unsafe.Pointer(&f))
		}
	}
	return sum
}

// sleep sets the alarm for what comes next, or for after pause if there is more to
// do then, or reports false if something is due by now. It returns the callbacks in
// the batch, for the caller to run once it is asleep, and its reading of the clock.
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
		p.watched, p.afterwards = p.wakeups, next
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

// discardLocked takes buckets without timers off the queue's head, so that the alarm is not
// set for them, and returns when the first other one is due.
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

// discard takes a bucket off the queue if it has no timers.
func (p *poller) discard(due dueBucket, ticket delayqueue.Ticket) bool {
	due.sh.mu.Lock()
	defer due.sh.mu.Unlock()
	if !due.sh.wheel.Discard(due.b) {
		return false
	}
	// Under the lock: once it is free, the bucket may be offered again.
	p.s.queue.Remove(ticket)
	p.idle = p.idle || due.sh.wheel.Len() == 0
	return true
}

// close ends the alarm, now that the queue is empty for good. If the poller still has
// something to do, shutdown does so.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.unfinished && !p.s.dispatch.hasReady() {
		p.stopAlarmLocked()
	}
}

// stopAlarmLocked stops the alarm if it is set: it may be of a bubble that is over.
func (p *poller) stopAlarmLocked() {
	p.watchLocked() // there is no next ring
	if p.armed != never {
		p.armed = never
		p.alarm.Stop()
	}
	if p.s.real {
		alarm.Release()
	}
}

// shutdown waits until a closed poller has done its work, and ends the alarm. The poller's
// goroutine may go on with callbacks of the pool's: nobody waits for that.
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

// A shardList is a queue of shards. A shard is in it once.
type shardList []*shard

func (l *shardList) push(sh *shard) {
	if !slices.Contains(*l, sh) {
		*l = append(*l, sh)
	}
}

// pop takes the shard that has waited longest, or returns nil.
func (l *shardList) pop() *shard {
	if len(*l) == 0 {
		return nil
	}
	sh := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return sh
}
