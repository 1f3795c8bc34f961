package worker

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A Loop handles one shard, on its own goroutine. It sends rounds to the store: see round.go.
// Between rounds it sleeps until its timer fires, a report is queued, or the store wakes it.
type Loop struct {
	run     *Run
	shard   int
	claimer *places.Claimer // the loop, for the pool

	wakeSignal   chan struct{}      // has an element if there may be something to do
	stepRequests chan chan struct{} // the loop does all that is due, then closes the element
	ended        chan struct{}      // closed when the goroutine ends

	mu        sync.Mutex // guards the fields of this block
	reports   []*Report  // waiting to be sent
	claimNow  bool       // claim now, before claimAt
	hasOffer  bool       // a place was reserved for the loop: claim
	urgentIDs []string   // ids of tasks whose leases must be extended now
	phase     Phase

	// The goroutine owns the fields below.

	timer             timer.Handle // fires when the loop must claim or extend a lease
	claimAt           time.Time    // when to claim next; the time never: only on request
	leases            list.List    // of *Attempt: see leases.go
	senderName        string
	lastCommandNumber int64         // of the latest command
	unansweredRound   *round        // the round that was not answered, or nil
	backoff           time.Duration // the longest pause before retryAt; zero after a success
	retryAt           time.Time     // no command before this time; zero after a success
	flushDeadline     time.Time     // when a closing loop gives up, by the system's clock: a virtual one may stand still
	storeFailed       bool          // the store has failed permanently
	leaseCount        int           // attempts whose leases the Worker may still have
	limitReached      bool          // a Limit held back tasks from the latest claim: claim with each report
	storeTime         store.Time    // the store's time in the latest answer
	answeredAt        time.Time     // when the latest answer came; zero: there was none
	noPlaceSince      time.Time     // when a claim that is due began to wait for a place: see addClaim; zero: none waits
}

// A Phase is a step of a Worker's shutdown. Each Phase also does what the Phases before it do.
type Phase uint8

const (
	Working     Phase = iota
	Stopping          // claim no more
	Aborting          // cancel the contexts of running attempts
	HandingBack       // hand the tasks of running attempts back to the store
	Closing           // send the waiting reports, then end
	Abandoned         // end, even if reports are waiting
)

const (
	// After a failed command a Worker pauses for MinRetryPause. After each further failure it
	// pauses longer, up to MaxRetryPause.
	MinRetryPause = 20 * time.Millisecond
	MaxRetryPause = time.Second
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

func newLoop(r *Run, shard int) *Loop {
	l := &Loop{
		run:          r,
		shard:        shard,
		senderName:   r.Name + "." + strconv.Itoa(shard),
		wakeSignal:   make(chan struct{}, 1),
		stepRequests: make(chan chan struct{}),
		ended:        make(chan struct{}),
	}
	l.claimer = r.Pool.NewClaimer(l.offerPlace, l.onTimer)
	return l
}

// requestClaim makes the loop claim in its next round.
func (l *Loop) requestClaim() {
	l.mu.Lock()
	l.claimNow = true
	l.mu.Unlock()
	l.wake()
}

// offerPlace makes the loop claim with the place that is reserved for it.
func (l *Loop) offerPlace() {
	l.mu.Lock()
	l.hasOffer = true
	l.mu.Unlock()
	l.wake()
}

func (l *Loop) wake() {
	select {
	case l.wakeSignal <- struct{}{}:
	default:
	}
}

// onTimer is the timer's callback. With a virtual clock it waits until the loop has
// done all that is due: the clock does not advance before onTimer returns.
func (l *Loop) onTimer() {
	if !l.run.HasVirtualClock {
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

func (l *Loop) setPhase(p Phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

func (l *Loop) work() {
	defer close(l.ended)
	l.claimAt = l.run.Now()
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
func (l *Loop) step() (mustEnd bool) {
	now := l.run.Now()
	l.mu.Lock()
	phase := l.phase
	l.mu.Unlock()
	l.endAttempts(phase)
	if phase == Abandoned {
		l.timer.Stop()
		return true
	}
	if phase == Closing && l.canClose() {
		l.leaveShard()
		return true
	}
	if now.Before(l.retryAt) {
		l.setTimer(l.retryAt)
		return false
	}
	if l.unansweredRound != nil || phase == Working && !now.Before(l.claimAt) || !now.Before(l.nextExtension()) || l.hasRequests(phase) {
		l.sendRound(phase)
	}
	l.setNextTimer(phase)
	return false
}

// endAttempts cancels the running attempts, or hands them back, as the phase demands.
func (l *Loop) endAttempts(p Phase) {
	if p < Aborting {
		return
	}
	for a := range l.running() {
		a.Cancel(ErrClosed)
		if p >= HandingBack {
			l.queueReport(a.handBack(ReasonShutdown))
		}
	}
}

// canClose reports whether all reports have been sent, or it is too late to send them.
func (l *Loop) canClose() bool {
	now := time.Now()
	if l.flushDeadline.IsZero() {
		l.flushDeadline = now.Add(flushTimeout)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && l.unansweredRound == nil || l.storeFailed || now.After(l.flushDeadline)
}

// setTimer sets the timer. If the time at has come, it wakes the loop instead.
func (l *Loop) setTimer(at time.Time) {
	for {
		now := l.run.Now()
		d := at.Sub(now)
		if d <= 0 {
			l.wake()
			return
		}
		if !l.timer.Move(d) {
			l.timer, _ = l.run.Timers.Start(d, l.onTimer)
		}
		// If a virtual clock has advanced meanwhile, the timer fires too late: set it
		// again. Some clocks advance all the time, so ignore a small advance.
		if !l.run.HasVirtualClock || l.run.Now().Sub(now) < minClockAdvance {
			return
		}
	}
}

// setNextTimer sets the timer for the next thing to do.
func (l *Loop) setNextTimer(p Phase) {
	if p == Closing || l.unansweredRound == nil && l.hasRequests(p) {
		l.wake()
		return
	}
	at := l.claimAt
	if p != Working {
		at = never
	}
	if extendAt := l.nextExtension(); extendAt.Before(at) {
		at = extendAt
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

// hasRequests reports whether other goroutines have sent reports or requests. The loop may have
// received their wakeSignal already, during a round.
func (l *Loop) hasRequests(p Phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) > 0 || len(l.urgentIDs) > 0 || p == Working && (l.claimNow || l.hasOffer)
}

// delayRetry logs the error of a command, and lengthens the pause before the next
// command.
func (l *Loop) delayRetry(err error, now time.Time) {
	l.run.Counters.Errors.Add(1)
	l.run.LogError(err)
	l.backoff = min(max(2*l.backoff, MinRetryPause), MaxRetryPause)
	l.retryAt = now.Add(l.backoff/2 + random.N(l.run.Random, l.backoff/2+1))
}

// Listen makes a Loop claim when the store wakes its shard, until ctx ends.
func (r *Run) Listen(ctx context.Context) {
	shards := make([]int, len(r.loops))
	for i := range shards {
		shards[i] = i
	}
	onWakeup := func(shard int) {
		r.Counters.Wakeups.Add(1)
		if r.Pool.Await(r.loops[shard].claimer) { // meanwhile the store wakes other workers
			r.loops[shard].requestClaim()
		}
	}
	for pause := MinRetryPause; ; pause = min(2*pause, MaxRetryPause) {
		waitStart := time.Now()
		err := r.Store.Wait(ctx, shards, onWakeup)
		if ctx.Err() != nil {
			return
		}
		if IsPermanent(err) {
			r.Fail(err)
			return
		}
		if time.Since(waitStart) > MaxRetryPause {
			pause = MinRetryPause
		}
		r.LogError(err)
		if Sleep(ctx, pause) != nil {
			return
		}
	}
}
