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

// A loop is the part of a Worker that handles one shard. One goroutine sends all its
// commands, in rounds: see round.go. Whatever arrives during a round goes into the next
// one, so rounds grow with the load.
//
// The loop sleeps until its timer fires or the store wakes it: see listen. The timer
// fires when the loop must claim or extend a lease. The answer to a claim says when to
// claim next.
type loop struct {
	w      *Worker
	shard  int
	places *places

	signal chan struct{}      // has an element if there may be something to do
	asks   chan chan struct{} // the loop does all that is due, then closes the element
	ended  chan struct{}      // closed when the goroutine ends

	// Guarded by places.mu.

	inLine   bool // the loop is in places.waiting
	wants    wants
	reserved int       // 1 if a place is reserved for the loop
	fair     time.Time // when the loop last made a fair claim: see fairInterval

	mu      sync.Mutex // guards the fields of this block
	reports []*report  // waiting to be sent
	claim   bool       // claim now, before claimAt
	called  bool       // places has offered the loop a place: claim if it is still useful
	urgent  []string   // ids of tasks whose leases must be extended now
	phase   phase

	// The goroutine owns the fields below.

	timer      timer.Handle
	claimAt    time.Time // when to claim next, or never
	held       leases
	sender     string
	number     int64  // of the latest command
	unsure     *round // the round that was not answered, or nil
	backoff    time.Duration
	retryAt    time.Time  // no command before this time; zero after a success
	flushed    time.Time  // when a closing loop gives up
	lost       bool       // the store has failed permanently
	open       int        // attempts whose leases the Worker may still have
	waitsAlone *attempt   // the suspect that waits until nothing else runs, or nil
	limited    bool       // a Limit held back tasks from the latest claim: claim with each report
	known      store.Time // the store's time in the latest answer
	knownAt    time.Time  // when that answer came; zero: there was none
	noPlace    time.Time  // when the claim began to wait for a place; zero: it does not wait
}

// A phase is a step of a Worker's shutdown. Each phase also does what the phases before
// it do.
type phase uint8

const (
	working   phase = iota
	stopping        // claim no more
	aborting        // cancel the contexts of running attempts
	handing         // hand back attempts that still run
	closing         // send the waiting reports, then end
	abandoned       // end
)

const (
	// After a failed command the loop pauses for firstBackoff. After each further
	// failure it pauses longer, up to lastBackoff.
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// patience is how long a claim waits for a place. After that, the loop makes the
	// store wake other workers for the due tasks.
	patience = 10 * time.Millisecond
	// minAdvance is the smallest advance of a virtual clock after which setTimer sets
	// the timer again.
	minAdvance = 100 * time.Microsecond
	// flushTimeout is how long a Worker that shuts down tries to send its last reports.
	flushTimeout = 5 * time.Second
)

// never is later than any other time.
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

// claimSoon makes the loop claim in its next round.
func (l *loop) claimSoon() {
	l.mu.Lock()
	l.claim = true
	l.mu.Unlock()
	l.wake()
}

// offer makes the loop claim: what it waits for is available, and a place is reserved
// for it.
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

// onTimer is the timer's callback. With a virtual clock it returns after the loop has
// done all that is due. The clock does not advance until then.
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

// queueReport queues the report on an attempt, unless one is queued already.
func (l *loop) report(r *report) {
	l.mu.Lock()
	if !r.a.reported {
		r.a.reported = true
		l.reports = append(l.reports, r)
	}
	l.mu.Unlock()
	l.wake()
}

// reportAndRelease queues the report on an attempt that has ended, and releases its
// place. It does both under the lock, so that the round with the report can claim a
// task for the place.
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

// setPhase makes the loop enter a phase of the shutdown.
func (l *loop) enter(p phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

// run is the loop's goroutine.
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
// the loop must end.
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

// hasWork reports whether there is something to do now.
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

// endAttempts cancels the running attempts, or hands them back, as the phase demands.
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

// isFlushed reports whether all reports have been sent, or it is too late to send them.
func (l *loop) flushedAll() bool {
	now := time.Now()
	if l.flushed.IsZero() {
		l.flushed = now.Add(flushTimeout)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && l.unsure == nil || l.lost || now.After(l.flushed)
}

// setTimer sets the timer. If the time has come, it wakes the loop instead.
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
		// If a virtual clock has advanced meanwhile, the timer fires too late: set it
		// again. Ignore a small advance, because some clocks advance all the time.
		if !l.w.virtual || l.w.now().Sub(now) < minAdvance {
			return
		}
	}
}

// setNextTimer sets the timer for the next thing to do.
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

// hasMore reports whether something to do has arrived during the round. Its signal may
// have been consumed already.
func (l *loop) more(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgent) > 0 || p == working && (l.claim || l.called)
}

// delayRetry logs the error of a command, and lengthens the pause before the next
// command.
func (l *loop) failed(err error, now time.Time) {
	l.w.n.errors.Add(1)
	l.w.complain(err)
	l.backoff = min(max(2*l.backoff, firstBackoff), lastBackoff)
	l.retryAt = now.Add(l.backoff/2 + rand.N(l.backoff/2+1))
}

// untilLeaseTimer returns the time until only a tenth of a lease remains. sent is when
// the command was sent that started or extended the lease.
func (l *loop) untilLeaseTimer(sent time.Time) time.Duration {
	return sent.Add(l.w.config.lease - l.w.config.lease/10).Sub(l.w.now())
}

// listen makes a loop claim when the store wakes its shard.
func (w *Worker) listen(ctx context.Context) {
	shards := make([]int, len(w.loops))
	for i := range shards {
		shards[i] = i
	}
	places := w.places.Load()
	wake := func(shard int) {
		w.n.wakeups.Add(1)
		places.await(w.loops[shard]) // meanwhile the store wakes other workers
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
