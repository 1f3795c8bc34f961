package timer

import (
	"context"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/internal/alarm"
	"github.com/tickless/tickless/timingwheel"
)

// batchSize bounds how many timers are expired or cascaded in one hold of a
// shard's lock, and so how long a start or a stop can wait for it.
const batchSize = 256

// poller expires buckets when they are due, and sleeps in between, until the
// first one is. It is not a goroutine but what the alarm runs: while nothing is
// pending there is nothing left of it.
//
// It is awake or asleep, and awake at most once at a time. Asleep, the alarm is
// set for the first expiration in the queue or earlier. What keeps this so:
//
//   - Who queues a bucket offers it first and calls wake then.
//   - The poller looks at the queue and falls asleep in one critical section of
//     mu, which wake takes too.
//
// So if the offer comes before that look, the poller sees it. If it comes after,
// then so does wake, which finds the poller asleep and moves the alarm. If wake
// finds the poller awake, the look is still to come.
type poller struct {
	s     *Scheduler
	alarm alarm.Alarm
	// up is held while the poller is awake.
	up latch

	mu    sync.Mutex
	awake bool
	// armed is what the alarm is set for, never if it is not. While the poller
	// sleeps it only moves earlier.
	armed int64
	// look: since the poller last looked at the queue for buckets without timers,
	// a shard's last timer was taken out. Then the alarm is set for no later than
	// lookAfter from there. It changes under mu, and is read without: see wake.
	look atomic.Bool
	// closed: nothing will be queued any more.
	closed bool
	// unfinished: it was interrupted, and sleeps with work at hand.
	unfinished bool

	wakeups, emptyWakeups uint64

	// All below belongs to whoever is awake.

	expired [batchSize]timingwheel.Expired[payload]
	// batch are callbacks on their way to the executor.
	batch line
	// expiring are contexts whose timers have fired, to be ended without a lock.
	expiring []*deadlineCtx
	// draining is a shard with an expired bucket not yet worked through.
	draining *shard
}

func (p *poller) init(s *Scheduler) {
	p.s = s
	p.armed = never
	if s.system {
		p.alarm = alarm.New(p.poll)
	} else {
		p.alarm = alarm.On(s.clock, p.poll)
	}
}

// lookAfter is how long the poller goes on sleeping on a bucket after the last
// timer of its shard was taken out: long enough that timers which come and go,
// one at a time, do not set the alarm each time.
const lookAfter = 20 * time.Millisecond

// wake tells the poller that something is due at a moment, if that is earlier
// than what it knows. If the moment is emptied it tells the poller instead that
// what it sleeps on may be gone: without that, a Scheduler with nothing pending
// would keep its alarm, and what that holds, until the bucket of the timer that
// was stopped last would have expired. No shard may be locked.
func (p *poller) wake(at int64) {
	// The poller clears look before it looks. So whoever finds it set, after the
	// shard was unlocked, comes before that look, which will see the shard.
	if at == emptied && p.look.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == emptied {
		p.look.Store(true)
		at = min(deadlineAfter(p.s.now(), lookAfter), emptied)
	}
	if !p.awake && at < p.armed {
		p.armed = at
		p.alarm.Reset(time.Duration(max(at-p.s.now(), 0)))
	}
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
	p.up.add(1)
	p.mu.Unlock()
	p.run(false)
}

// run works until nothing is due, then falls asleep.
func (p *poller) run(worked bool) {
	asleep := false
	defer func() {
		switch {
		case asleep:
		case p.s.system:
			// A callback that ran on this goroutine has ended it, with
			// runtime.Goexit. Another takes over where it stopped.
			go p.run(true)
		default:
			// Or it has ended the advancing of a clock, also by a panic. The next
			// one goes on where this one stopped.
			p.interrupted()
		}
	}()
	for !asleep {
		worked = p.work() || worked
		asleep = p.sleep(worked)
	}
}

// interrupted puts the poller to sleep in the middle of its work, until the clock
// is advanced again.
func (p *poller) interrupted() {
	p.mu.Lock()
	p.awake, p.unfinished = false, true
	p.armed = p.s.now()
	p.alarm.Reset(0)
	p.mu.Unlock()
	p.up.add(-1)
}

// finish does what is left for a closed poller, on goroutines of its own, or
// returns ctx's error if that ends first.
func (p *poller) finish(ctx context.Context) error {
	for more := p.s.hand.hasReady() || p.wasInterrupted(); more; more = p.wasInterrupted() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.poll()
		}()
		if err := await(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

func (p *poller) wasInterrupted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unfinished
}

// work does all that is due. It reports whether there was anything.
func (p *poller) work() (worked bool) {
	p.flush() // what a run that ended in the middle has left
	if p.draining != nil {
		p.drain(p.draining)
	}
	for {
		if p.s.hand.way == onPoller {
			p.batch.fs = p.s.hand.takeReady(p.batch.fs)
			worked = worked || len(p.batch.fs) > 0
			p.flush()
		}
		due, ok := p.s.queue.Poll()
		if !ok {
			return worked
		}
		sh := due.sh
		sh.mu.Lock()
		sh.wheel.Expire(due.b)
		sh.mu.Unlock()
		worked = p.drain(sh) || worked
	}
}

// drain works through a shard's expired timers, in batches. It reports whether
// there were any.
func (p *poller) drain(sh *shard) (worked bool) {
	p.draining = sh
	for more := true; more; {
		sh.mu.Lock()
		before := sh.wheel.Cascaded()
		var n int
		n, more = sh.wheel.Drain(p.expired[:])
		p.fireLocked(sh, p.expired[:n])
		worked = worked || n > 0 || sh.wheel.Cascaded() != before
		sh.wake = never // the poller is awake and will see for itself
		sh.mu.Unlock()
		p.expireContexts()
		p.flush()
		if more {
			runtime.Gosched() // to those who wait for the lock
		}
	}
	p.draining = nil
	return worked
}

// fireLocked does for timers that left the wheel what is done under the shard's
// lock, and collects their callbacks in p.batch.
func (p *poller) fireLocked(sh *shard, expired []timingwheel.Expired[payload]) {
	if len(expired) == 0 {
		return
	}
	at := p.s.moment()
	sh.n.fired += uint64(len(expired))
	for i := range expired {
		e := &expired[i]
		sh.n.lateness.record(time.Duration(at.now - e.Deadline))
		if e.Tag == tagContext {
			p.expiring = append(p.expiring, e.Value.context())
		} else if f, ok := sh.expireLocked(e.Value, e.Tag, at); ok {
			p.batch.fs = append(p.batch.fs, f)
		}
	}
	sh.releaseLocked(len(expired) - sh.rearmed)
	sh.rearmed = 0
	clear(expired)
}

// expireContexts ends the contexts whose timers were found due. They do not wait
// behind callbacks: nothing of the user's runs here.
func (p *poller) expireContexts() {
	for i, c := range p.expiring {
		p.expiring[i] = nil
		c.expireOnPoller()
	}
	p.expiring = p.expiring[:0]
}

// flush hands the batch over, or runs it.
func (p *poller) flush() {
	if len(p.batch.fs) == 0 {
		return
	}
	if h := &p.s.hand; h.way == onPoller {
		p.batch.each(h.submit)
	} else {
		h.batch(p.batch.fs)
		clear(p.batch.fs)
		p.batch.fs = p.batch.fs[:0]
	}
}

// sleep sets the alarm for what comes next, or reports false if something is due
// by now.
func (p *poller) sleep(worked bool) bool {
	p.mu.Lock()
	p.look.Store(false)
	p.mu.Unlock()
	p.discardEmpty()
	p.mu.Lock()
	next := int64(never)
	if p.s.hand.way == onPoller && p.s.hand.hasReady() {
		next = 0
	} else if due, _, ok := p.s.queue.Peek(); ok {
		next = due.expiration
	}
	now := p.s.now()
	if next <= now {
		p.mu.Unlock()
		return false
	}
	if next != never {
		if p.look.Load() {
			next = min(next, deadlineAfter(now, lookAfter))
		}
		p.alarm.Reset(time.Duration(next - now))
	} else if p.closed {
		p.alarm.Close()
	} else {
		p.alarm.Stop()
	}
	p.awake = false
	p.armed = next
	if !worked {
		p.emptyWakeups++
	}
	p.mu.Unlock()
	p.up.add(-1)
	return true
}

// discardEmpty takes buckets without timers off the queue's head, so that the
// alarm is not set for them.
func (p *poller) discardEmpty() {
	for {
		due, ticket, ok := p.s.queue.Head()
		if !ok {
			return
		}
		due.sh.mu.Lock()
		discarded := due.sh.wheel.Discard(due.b)
		if discarded {
			// Under the lock: once it is free, the bucket may be offered anew.
			p.s.queue.Remove(ticket)
		}
		due.sh.mu.Unlock()
		if !discarded {
			return
		}
	}
}

// close ends the alarm, now that the queue is empty for good; or lets the poller
// do so, if it has yet to do something.
func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if !p.awake && !p.unfinished && !p.s.hand.hasReady() {
		p.armed = never
		p.alarm.Close()
	}
}

// shutdown waits until nothing is left of a closed poller.
func (p *poller) shutdown(ctx context.Context) error {
	if err := p.up.wait(ctx); err != nil {
		return err
	}
	return await(ctx, p.alarm.Close())
}

func (p *poller) stats(st *Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st.Wakeups, st.EmptyWakeups = p.wakeups, p.emptyWakeups
}
