package durable

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A loop is the part of a Worker that handles one shard. One goroutine sends all
// commands of the loop, in rounds: see round.go. Whatever comes during a round goes
// into the next one, so that rounds grow with the load.
//
// The loop sleeps until its timer fires or the store wakes it: see listen. The timer is
// set for the next claim, as the answer to the last claim said, or for the next
// extension of a lease.
type loop struct {
	w      *Worker
	shard  int
	places *places

	// signal has an element if there may be something to do. A sender to asks waits
	// until the loop has done all that is due. ended is closed when the goroutine ends.
	signal chan struct{}
	asks   chan chan struct{}
	ended  chan struct{}
	// Guarded by places.mu.
	inLine   bool
	wants    wants
	reserved int       // 1 if a place is reserved for the loop
	fair     time.Time // when the loop last claimed only for handlers below their share

	mu      sync.Mutex
	reports []*report // waiting to be sent
	claim   bool      // claim without waiting for claimAt
	called  bool      // claim when the loop's handlers have room
	urgent  []string  // ids of tasks whose leases must be extended now
	phase   phase

	// The goroutine owns the fields below.

	timer      timer.Handle
	claimAt    time.Time // when to claim next, or never
	held       leases
	sender     string
	number     int64
	unsure     *round // the round without an answer, or nil
	backoff    time.Duration
	retryAt    time.Time // no command before this time; zero after a success
	flushed    time.Time // when a closing loop gives up
	lost       bool      // the store has failed permanently
	open       int       // attempts whose leases the store may still have
	waitsAlone *attempt  // an attempt that waits until it is alone, or nil
	limited    bool      // a limit held back tasks from the latest claim: claim with each report
	// known is the store's time in the latest answer, and knownAt the local time when
	// it came, or zero if there is no answer.
	known   store.Time
	knownAt time.Time
	// noPlace is when the claim that waits for a place began to wait, or zero.
	noPlace time.Time
}

// A phase is a step of a Worker's shutdown. Each phase includes those before it.
type phase uint8

const (
	working   phase = iota
	stopping        // claim no more
	aborting        // cancel the contexts of running attempts
	handing         // hand back attempts that still run
	closing         // send the waiting reports, then end
	abandoned       // end
)

// Durations of the loops.
const (
	// firstBackoff and lastBackoff are the shortest and the longest pause after a
	// failed command.
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// patience is how long a claim waits for a place before the loop has other workers
	// woken for the due tasks.
	patience = 10 * time.Millisecond
	// minAdvance is the least advance of a virtual clock for which arm sets the timer again.
	minAdvance = 100 * time.Microsecond
	// flushTimeout is how long a Worker that shuts down tries to send its reports.
	flushTimeout = 5 * time.Second
)

// never is later than any time.
var never = time.Unix(1<<40, 0)

func newLoop(w *Worker, shard int, p *places) *loop {
	return &loop{
		w:      w,
		shard:  shard,
		places: p,
		sender: w.id + "." + strconv.Itoa(shard),
		signal: make(chan struct{}, 1),
		asks:   make(chan chan struct{}),
		ended:  make(chan struct{}),
	}
}

// claimSoon makes the loop claim.
func (l *loop) claimSoon() {
	l.mu.Lock()
	l.claim = true
	l.mu.Unlock()
	l.wake()
}

// call makes the loop claim if what it waits for is still available.
func (l *loop) call() {
	l.mu.Lock()
	l.called = true
	l.mu.Unlock()
	l.wake()
}

func (l *loop) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// ring is the timer's callback. With a virtual clock it returns after the loop has done
// all that is due, so that the clock does not advance before that.
func (l *loop) ring() {
	if !l.w.virtual {
		l.wake()
		return
	}
	done := make(chan struct{})
	select {
	case l.asks <- done:
		<-done
	case <-l.ended:
	}
}

// report queues the report on an attempt, unless one is queued already.
func (l *loop) report(r *report) {
	l.mu.Lock()
	if !r.a.reported {
		r.a.reported = true
		l.reports = append(l.reports, r)
	}
	l.mu.Unlock()
	l.wake()
}

// returned queues the report on an attempt whose handler has returned, and releases its
// place. Both happen together, so that the round with the report can claim a task for
// the place.
func (l *loop) returned(r *report) {
	l.mu.Lock()
	if !r.a.reported {
		r.a.reported = true
		l.reports = append(l.reports, r)
	}
	calls := l.places.release(r.a)
	l.mu.Unlock()
	l.wake()
	calls.make()
}

// enter makes the loop enter a phase.
func (l *loop) enter(p phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

// run runs on the loop's goroutine.
func (l *loop) run() {
	defer close(l.ended)
	l.claimAt = l.w.now()
	l.wake()
	for {
		var done chan struct{}
		select {
		case <-l.signal:
		case done = <-l.asks:
		}
		over := l.step()
		if done != nil {
			close(done)
		}
		if over {
			return
		}
	}
}

// step does all that is due, and sets the timer for what comes next. It returns true if
// the loop has ended.
func (l *loop) step() (over bool) {
	now := l.w.now()
	l.mu.Lock()
	claim, phase := l.claim || l.called, l.phase
	l.mu.Unlock()
	l.abort(phase)
	if phase == abandoned {
		l.timer.Stop()
		return true
	}
	if phase == closing && l.flushedAll() {
		l.leave()
		return true
	}
	if now.Before(l.retryAt) {
		l.arm(l.retryAt)
		return false
	}
	if l.due(now, phase, claim) {
		l.round(phase)
	}
	l.rearm(phase)
	return false
}

// due reports whether there is something to do now.
func (l *loop) due(now time.Time, p phase, claim bool) bool {
	if p == working && (claim || !now.Before(l.claimAt)) || l.unsure != nil {
		return true
	}
	if a := l.held.first(); a != nil && now.Sub(a.renewed) >= l.w.config.lease/3 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgent) > 0
}

// abort applies the phase to the running attempts.
func (l *loop) abort(p phase) {
	if p >= stopping && l.waitsAlone != nil {
		l.dismiss(l.waitsAlone)
	}
	if p < aborting {
		return
	}
	for a := l.held.first(); a != nil; a = a.next {
		a.cancel(ErrClosed)
		if p >= handing {
			l.report(&report{a: a, end: store.HandBack, due: a.storedDue})
		}
	}
}

// flushedAll reports whether all reports have been sent, or the time for that is over.
func (l *loop) flushedAll() bool {
	now := time.Now()
	if l.flushed.IsZero() {
		l.flushed = now.Add(flushTimeout)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && l.unsure == nil || l.lost || now.After(l.flushed)
}

// arm sets the timer.
func (l *loop) arm(at time.Time) {
	for {
		now := l.w.now()
		d := at.Sub(now)
		if d <= 0 {
			l.wake()
			return
		}
		if !l.timer.Move(d) {
			l.timer, _ = l.w.timers.Start(d, l.ring)
		}
		// If a virtual clock has advanced meanwhile, the timer is late: set it again. A
		// running clock always advances a little.
		if !l.w.virtual || l.w.now().Sub(now) < minAdvance {
			return
		}
	}
}

// rearm sets the timer for the next thing to do.
func (l *loop) rearm(p phase) {
	if p == closing || l.unsure == nil && l.more(p) {
		l.wake()
		return
	}
	at := l.claimAt
	if p != working {
		at = never
	}
	if a := l.held.first(); a != nil {
		if renew := a.renewed.Add(l.w.config.lease / 3); renew.Before(at) {
			at = renew
		}
	}
	if at.Before(l.retryAt) || l.unsure != nil {
		at = l.retryAt
	}
	if at == never {
		l.timer.Stop()
		return
	}
	l.arm(at)
}

// more reports whether something has come during a round or while a round has no
// answer. The signal for it may already have been consumed.
func (l *loop) more(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgent) > 0 || p == working && (l.claim || l.called)
}

// failed lengthens the pause between commands.
func (l *loop) failed(err error, now time.Time) {
	l.w.n.errors.Add(1)
	l.w.complain(err)
	l.backoff = min(max(2*l.backoff, firstBackoff), lastBackoff)
	l.retryAt = now.Add(l.backoff/2 + rand.N(l.backoff/2+1))
}

// untilLeaseTimer returns the time until the leases that a command extended are nearly
// over: until a tenth of the lease before their end. sent is when the command was sent.
func (l *loop) untilLeaseTimer(sent time.Time) time.Duration {
	return sent.Add(l.w.config.lease - l.w.config.lease/10).Sub(l.w.now())
}

// listen makes the loops claim when the store wakes them.
func (w *Worker) listen(ctx context.Context) {
	shards := make([]int, len(w.loops))
	for i := range shards {
		shards[i] = i
	}
	places := w.places.Load()
	wake := func(shard int) {
		w.n.wakeups.Add(1)
		places.await(w.loops[shard]) // a worker without room passes wake-ups to other workers
		w.loops[shard].claimSoon()
	}
	for pause := firstBackoff; ; pause = min(2*pause, lastBackoff) {
		begin := time.Now()
		err := w.client.store.Wait(ctx, shards, wake)
		if ctx.Err() != nil {
			return
		}
		if hopeless(err) {
			w.fail(err)
			return
		}
		if time.Since(begin) > lastBackoff {
			pause = firstBackoff
		}
		w.complain(err)
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
