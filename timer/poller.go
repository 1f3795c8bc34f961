package timer

import (
	"context"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/alarm"
	"github.com/tickless/tickless/internal/latch"
	"github.com/tickless/tickless/internal/share"
)

// poller sleeps until the first bucket of the queue is due. Then its expirer does the work.
// It has no goroutine of its own: the alarm calls it.
//
// While the poller is asleep, the alarm is set for the first expiration in the queue, or
// earlier. A goroutine that adds a bucket with an earlier expiration calls wake. The
// poller falls asleep under mu, and wake locks mu. So there are two cases:
//
//   - The poller is awake: wake lowers alarmAt, which the poller reads before it falls
//     asleep.
//   - The poller is asleep: wake sets the alarm.
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
type poller struct {
	s       *Scheduler
	alarm   clock.Alarm
	expirer expirer

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

	wakeups, emptyWakeups uint64
}

func init() { share.CallbacksTakeLong = alarm.ExpectLateRings }

func (p *poller) init(s *Scheduler) {
	p.s, p.expirer.s = s, s
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
	p.awake = true
	p.alarmAt = never
	p.wakeups++
	p.mu.Unlock()
	p.workUntilAsleep(false)
}

// workUntilAsleep works until nothing is due, or for maxWorkTime. Then it puts the poller
// to sleep, and runs the remaining callbacks. While they run, another goroutine can be
// the poller.
func (p *poller) workUntilAsleep(worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.usesSystemClock:
			// A callback on this goroutine has called runtime.Goexit. Another goroutine
			// goes on with the work.
			go p.workUntilAsleep(true)
		default:
			// A callback has ended the Advance of a virtual clock by a panic or Goexit.
			// The next Advance goes on with the work.
			p.mu.Lock()
			defer p.mu.Unlock()
			now := p.s.moment()
			p.setAlarmLocked(now, now.nanos)
			p.fallAsleepLocked()
		}
	}()
	var callbacks share.Work
	for at := p.s.moment(); !asleep; {
		traceRegion := trace.StartRegion(context.Background(), "timer.poll") // free unless tracing is on
		didWork, pause := p.expirer.work(at)
		traceRegion.End()
		worked = worked || didWork
		callbacks, at, asleep = p.trySleep(worked, pause)
	}
	callbacks.Run()
}

// trySleep sets the alarm and puts the poller to sleep. The caller must then run the
// callbacks. If a timer is already due, the poller stays awake, and ok is false.
func (p *poller) trySleep(worked bool, pause time.Duration) (callbacks share.Work, at moment, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &p.expirer
	at = p.s.moment()
	nextAlarmAt := min(e.nextBucketAt, p.alarmAt)
	switch {
	case pause >= 0: // work is left
		nextAlarmAt = at.nanos + int64(pause)
	case nextAlarmAt <= at.nanos:
		p.alarmAt = never
		return callbacks, at, false
	// If this wake-up or the next may be for nothing, remove the empty buckets for which
	// the alarm would go off.
	case !worked || nextAlarmAt-at.nanos > int64(discardEmptyDelay) || p.closed:
		e.shouldTrim = p.mustDiscardEmpty.Swap(false) || e.shouldTrim
		if nextAlarmAt != never {
			nextAlarmAt = e.discardEmptyBuckets()
		}
	}
	callbacks = p.s.dispatcher.shareBatch(&e.batch, time.Duration(nextAlarmAt-at.nanos))
	p.setAlarmLocked(at, nextAlarmAt)
	if !worked {
		p.emptyWakeups++
	}
	if pause < 0 && (e.shouldTrim || p.mustDiscardEmpty.Load()) {
		e.shouldTrim = false
		p.s.trimmer.scheduleTrim()
	}
	p.fallAsleepLocked()
	return callbacks, at, true
}

// fallAsleepLocked marks the poller as asleep. The caller has set the alarm.
func (p *poller) fallAsleepLocked() {
	p.expirer.freeBuffer()
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
		p.mu.Lock()
		isDone := !p.awake && !p.hasCallbacksLocked()
		p.mu.Unlock()
		if isDone {
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

// hasCallbacksLocked reports whether callbacks wait that only the poller submits. The
// poller must be asleep.
func (p *poller) hasCallbacksLocked() bool {
	return len(p.expirer.batch.callbacks) > 0 || p.s.dispatcher.hasReadyCallbacks()
}

// close stops the alarm, because the queue is empty and stays so. If the poller still has
// callbacks to submit, shutdown stops the alarm later.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.hasCallbacksLocked() {
		p.stopAlarmLocked()
	}
}

// stopAlarmLocked stops the alarm. It does not touch an alarm that is not set, because
// that may belong to a bubble that has ended.
func (p *poller) stopAlarmLocked() {
	if p.alarmAt != never {
		p.alarmAt = never
		p.alarm.Stop()
		p.s.dispatcher.announceNoCall()
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
