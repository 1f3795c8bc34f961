package durable

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A shardLoop is the part of a Worker that handles one shard, on its own goroutine. It
// sends rounds to the store: see round.go. Between rounds it sleeps until its timer
// fires, a report is queued, or the store wakes it.
type shardLoop struct {
	w       *Worker
	shard   int
	pool    *places.Pool
	claimer *places.Claimer // the loop, for the pool

	wakeSignal   chan struct{}      // has an element if there may be something to do
	stepRequests chan chan struct{} // the loop does all that is due, then closes the element
	ended        chan struct{}      // closed when the goroutine ends

	mu        sync.Mutex // guards the fields of this block
	reports   []*report  // waiting to be sent
	claimNow  bool       // claim now, before claimAt
	hasOffer  bool       // a place was reserved for the loop: claim
	urgentIDs []string   // ids of tasks whose leases must be extended now
	phase     phase

	// The goroutine owns the fields below.

	timer             timer.Handle // fires when the loop must claim or extend a lease
	claimAt           time.Time    // when to claim next; the time never: only on request
	leases            leaseList
	senderName        string
	lastCommandNumber int64         // of the latest command
	unansweredRound   *round        // the round that was not answered, or nil
	backoff           time.Duration // the longest pause before retryAt; zero after a success
	retryAt           time.Time     // no command before this time; zero after a success
	flushDeadline     time.Time     // when a closing loop gives up
	storeFailed       bool          // the store has failed permanently
	leaseCount        int           // attempts whose leases the Worker may still have
	limitReached      bool          // a Limit held back tasks from the latest claim: claim with each report
	storeTime         store.Time    // the store's time in the latest answer
	answeredAt        time.Time     // when the latest answer came; zero: there was none
	pausedHandlers    []string      // the Worker's handlers that are paused
	noPlaceSince      time.Time     // when the claim began to wait for a place; zero: it does not wait
}

// A phase is a step of a Worker's shutdown. Each phase also does what the phases before
// it do.
type phase uint8

const (
	phaseWorking     phase = iota
	phaseStopping          // claim no more
	phaseAborting          // cancel the contexts of running attempts
	phaseHandingBack       // hand the tasks of running attempts back to the store
	phaseClosing           // send the waiting reports, then end
	phaseAbandoned         // end, even if reports are waiting
)

const (
	// After a failed command the loop pauses for minRetryPause. After each further
	// failure it pauses longer, up to maxRetryPause.
	minRetryPause = 20 * time.Millisecond
	maxRetryPause = time.Second
	// maxPlaceWait is how long a claim waits for a place. After that, the loop makes
	// the store wake other workers for the due tasks.
	maxPlaceWait = 10 * time.Millisecond
	// minClockAdvance is the smallest advance of a virtual clock after which setTimer
	// sets the timer again.
	minClockAdvance = 100 * time.Microsecond
	// flushTimeout is how long a Worker that shuts down tries to send its last reports.
	flushTimeout = 5 * time.Second
)

// never is later than any other time.
var never = time.Unix(1<<40, 0)

func newShardLoop(w *Worker, shard int, p *places.Pool) *shardLoop {
	l := &shardLoop{
		w:            w,
		shard:        shard,
		pool:         p,
		senderName:   w.id + "." + strconv.Itoa(shard),
		wakeSignal:   make(chan struct{}, 1),
		stepRequests: make(chan chan struct{}),
		ended:        make(chan struct{}),
	}
	l.claimer = p.NewClaimer(l.offerPlace, l.onTimer)
	return l
}

// requestClaim makes the loop claim in its next round.
func (l *shardLoop) requestClaim() {
	l.mu.Lock()
	l.claimNow = true
	l.mu.Unlock()
	l.wake()
}

// offerPlace makes the loop claim with the place that is reserved for it.
func (l *shardLoop) offerPlace() {
	l.mu.Lock()
	l.hasOffer = true
	l.mu.Unlock()
	l.wake()
}

func (l *shardLoop) wake() {
	select {
	case l.wakeSignal <- struct{}{}:
	default:
	}
}

// onTimer is the timer's callback. With a virtual clock it waits until the loop has
// done all that is due: the clock does not advance before onTimer returns.
func (l *shardLoop) onTimer() {
	if !l.w.hasVirtualClock {
		l.wake()
		return
	}
	stepDone := make(chan struct{})
	select {
	case l.stepRequests <- stepDone:
		<-stepDone
	case <-l.ended:
	}
}

// queueReport queues the report on an attempt, unless one is queued already.
func (l *shardLoop) queueReport(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queueReportLocked(r)
}

// queueReportLocked wakes the loop only for a new report: a loop that hands attempts back
// queues them in each step, and would never sleep while the store does not answer.
func (l *shardLoop) queueReportLocked(r *report) {
	if r.attempt.reportQueued {
		return
	}
	r.attempt.reportQueued = true
	l.reports = append(l.reports, r)
	l.wake()
}

// reportAndReleasePlace queues the report on an attempt, and releases its place. It
// does both under l.mu, so that one round can send the report and use the place.
func (l *shardLoop) reportAndReleasePlace(r *report) {
	l.mu.Lock()
	l.queueReportLocked(r)
	next := r.attempt.place.Release()
	l.mu.Unlock()
	next.Offer()
}

func (l *shardLoop) setPhase(p phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

func (l *shardLoop) run() {
	defer close(l.ended)
	l.claimAt = l.w.now()
	l.wake()
	for {
		var stepDone chan struct{}
		select {
		case <-l.wakeSignal:
		case stepDone = <-l.stepRequests:
		}
		mustEnd := l.step()
		if stepDone != nil {
			close(stepDone)
		}
		if mustEnd {
			return
		}
	}
}

// step does all that is due, and sets the timer for what comes next. It returns true if
// the loop must end.
func (l *shardLoop) step() (mustEnd bool) {
	now := l.w.now()
	l.mu.Lock()
	mustClaim, phase := l.claimNow || l.hasOffer, l.phase
	l.mu.Unlock()
	l.endAttempts(phase)
	if phase == phaseAbandoned {
		l.timer.Stop()
		return true
	}
	if phase == phaseClosing && l.canClose() {
		l.leaveShard()
		return true
	}
	if now.Before(l.retryAt) {
		l.setTimer(l.retryAt)
		return false
	}
	if l.hasWork(now, phase, mustClaim) {
		l.sendRound(phase)
	}
	l.setNextTimer(phase)
	return false
}

func (l *shardLoop) hasWork(now time.Time, p phase, mustClaim bool) bool {
	if p == phaseWorking && (mustClaim || !now.Before(l.claimAt)) || l.unansweredRound != nil {
		return true
	}
	if a := l.leases.oldest(); a != nil && now.Sub(a.extendedAt) >= l.w.config.lease/3 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgentIDs) > 0
}

// endAttempts cancels the running attempts, or hands them back, as the phase demands.
func (l *shardLoop) endAttempts(p phase) {
	if p < phaseAborting {
		return
	}
	for a := l.leases.oldest(); a != nil; a = a.next {
		a.cancel(ErrClosed)
		if p >= phaseHandingBack {
			l.queueReport(&report{attempt: a, end: store.HandBack, due: a.dueInStore, text: reasonShutdown})
		}
	}
}

// canClose reports whether all reports have been sent, or it is too late to send them.
func (l *shardLoop) canClose() bool {
	now := time.Now()
	if l.flushDeadline.IsZero() {
		l.flushDeadline = now.Add(flushTimeout)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && l.unansweredRound == nil || l.storeFailed || now.After(l.flushDeadline)
}

// setTimer sets the timer. If the time at has come, it wakes the loop instead.
func (l *shardLoop) setTimer(at time.Time) {
	for {
		now := l.w.now()
		d := at.Sub(now)
		if d <= 0 {
			l.wake()
			return
		}
		if !l.timer.Move(d) {
			l.timer, _ = l.w.timers.Start(d, l.onTimer)
		}
		// If a virtual clock has advanced meanwhile, the timer fires too late: set it
		// again. Some clocks advance all the time, so ignore a small advance.
		if !l.w.hasVirtualClock || l.w.now().Sub(now) < minClockAdvance {
			return
		}
	}
}

// setNextTimer sets the timer for the next thing to do.
func (l *shardLoop) setNextTimer(p phase) {
	if p == phaseClosing || l.unansweredRound == nil && l.hasNewWork(p) {
		l.wake()
		return
	}
	at := l.claimAt
	if p != phaseWorking {
		at = never
	}
	if a := l.leases.oldest(); a != nil {
		if extendAt := a.extendedAt.Add(l.w.config.lease / 3); extendAt.Before(at) {
			at = extendAt
		}
	}
	if at.Before(l.retryAt) || l.unansweredRound != nil {
		at = l.retryAt
	}
	if at == never {
		l.timer.Stop()
		return
	}
	l.setTimer(at)
}

// hasNewWork reports whether reports or requests have arrived during the round. The
// loop may have received their wakeSignal already.
func (l *shardLoop) hasNewWork(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgentIDs) > 0 || p == phaseWorking && (l.claimNow || l.hasOffer)
}

// delayRetry logs the error of a command, and lengthens the pause before the next
// command.
func (l *shardLoop) delayRetry(err error, now time.Time) {
	l.w.counters.errors.Add(1)
	l.w.logError(err)
	l.backoff = min(max(2*l.backoff, minRetryPause), maxRetryPause)
	l.retryAt = now.Add(l.backoff/2 + random.N(l.w.client.random, l.backoff/2+1))
}

// leaseTimerDelay returns the time until a lease has only a tenth left. The lease began
// at sentAt.
func (l *shardLoop) leaseTimerDelay(sentAt time.Time) time.Duration {
	return sentAt.Add(l.w.config.lease - l.w.config.lease/10).Sub(l.w.now())
}

// listenForWakeups makes a loop claim when the store wakes its shard.
func (w *Worker) listenForWakeups(ctx context.Context) {
	shards := make([]int, len(w.loops))
	for i := range shards {
		shards[i] = i
	}
	pool := w.places.Load()
	onWakeup := func(shard int) {
		w.counters.wakeups.Add(1)
		if pool.Await(w.loops[shard].claimer) { // meanwhile the store wakes other workers
			w.loops[shard].requestClaim()
		}
	}
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		waitStart := time.Now()
		err := w.client.store.Wait(ctx, shards, onWakeup)
		if ctx.Err() != nil {
			return
		}
		if isPermanent(err) {
			w.failRun(err)
			return
		}
		if time.Since(waitStart) > maxRetryPause {
			pause = minRetryPause
		}
		w.logError(err)
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
