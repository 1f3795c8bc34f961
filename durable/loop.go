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

// A loop is a Worker's part for one shard: one goroutine that does all the
// commands there, one round after the other: see round.go. What comes while a round is
// under way waits for the next, so that the rounds grow with the load.
//
// It sleeps until the store has something for it: its timer is set for the moment at
// which the last answer to a claim told it to come, or at which a lease is to be
// prolonged, and the store wakes it for what is earlier: see listen.
type loop struct {
	w      *Worker
	shard  int
	places *places

	// signal has an element if there may be something to do. Who sends to asks waits
	// until the loop has done what there is. Ended is closed when the goroutine ends.
	signal chan struct{}
	asks   chan chan struct{}
	ended  chan struct{}
	// Guarded by the Worker's places.
	inLine bool
	wants  wants
	handed int       // a place that it was called for
	fair   time.Time // when it claimed last for the handlers that have less than their share

	mu      sync.Mutex
	reports []*report // to be sent
	claim   bool      // claim, whatever the time
	called  bool      // claim, if there still is what the loop waits for
	urgent  []string  // ids of tasks whose leases are to be extended now
	phase   phase

	// All below is the goroutine's alone.

	timer   timer.Handle
	claimAt time.Time // when to claim next, or never
	held    leases
	sender  string
	number  int64
	unsure  *round // one without an answer
	backoff time.Duration
	retryAt time.Time // no command before it; zero after a success
	flushed time.Time // when a loop that closes gives up
	lost    bool      // the store cannot go on
	open    int       // attempts whose leases the store may still have
	waits   *attempt  // until it is alone
	limited bool      // the latest claim was: what a report makes room for comes with it
	// known is what the store's clock showed in the latest answer, which came at knownAt;
	// that is zero if there is none.
	known   store.Time
	knownAt time.Time
	// noPlace is since when a claim waits for a place; zero if none does.
	noPlace time.Time
}

// A phase is how far a Worker's shutdown has come. Each includes those before.
type phase uint8

const (
	working   phase = iota
	stopping        // claim no more
	aborting        // cancel the contexts of what runs
	handing         // hand back what still runs
	closing         // send the reports that there are, and end
	abandoned       // end
)

// Times of the loops.
const (
	// firstBackoff and lastBackoff bound the pauses after commands that failed.
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// patience is how long a loop waits for a place before it has other workers
	// woken for what it cannot take.
	patience = 10 * time.Millisecond
	// little is how late a clock of the user's own may make a loop.
	little = 100 * time.Microsecond
	// flush is how long a Worker that shuts down tries to send its reports.
	flush = 5 * time.Second
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

// claimSoon has the loop claim.
func (l *loop) claimSoon() {
	l.mu.Lock()
	l.claim = true
	l.mu.Unlock()
	l.wake()
}

// call has the loop claim if there still is what it waits for.
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

// ring is the timer's function. Under a virtual clock it returns when the loop has done
// what there is, so that no time passes meanwhile.
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

// report takes the report on an attempt, unless the attempt was handed back.
func (l *loop) report(r *report) {
	l.mu.Lock()
	if !r.a.reported {
		r.a.reported = true
		l.reports = append(l.reports, r)
	}
	l.mu.Unlock()
	l.wake()
}

// returned takes the report on an attempt whose handler has returned, and gives its place
// back: at one moment, so that the round that has the report can claim for the place.
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

// enter has the loop enter a phase.
func (l *loop) enter(p phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

// run is the goroutine.
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

// step does what there is to do, and sets the timer for what comes next. It returns
// true if the loop is over.
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

// abort does to the attempts under way what the phase asks for.
func (l *loop) abort(p phase) {
	if p >= stopping && l.waits != nil {
		l.dismiss(l.waits)
	}
	if p < aborting {
		return
	}
	for a := l.held.first(); a != nil; a = a.next {
		a.cancel(ErrClosed)
		if p >= handing {
			l.report(&report{a: a, end: store.HandBack, due: a.given})
		}
	}
}

// flushedAll reports whether there is nothing left to send, or it has been tried for
// long enough.
func (l *loop) flushedAll() bool {
	now := time.Now()
	if l.flushed.IsZero() {
		l.flushed = now.Add(flush)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && l.unsure == nil || l.lost || now.After(l.flushed)
}

// arm has the loop run at a time.
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
		// A virtual clock that has moved meanwhile, by a year maybe, has made it late. One
		// that runs always moves a little.
		if !l.w.virtual || l.w.now().Sub(now) < little {
			return
		}
	}
}

// rearm sets the timer for what comes next.
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

// more reports whether something has come while a round was under way, or without an
// answer: what woke the loop for it may be forgotten.
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

// untilCut is the time until contexts are cancelled whose leases were prolonged
// by a command that was sent at a time: a tenth of the lease before its end.
func (l *loop) untilCut(sent time.Time) time.Duration {
	return sent.Add(l.w.config.lease - l.w.config.lease/10).Sub(l.w.now())
}

// listen has the loops claim when the store wakes them.
func (w *Worker) listen(ctx context.Context) {
	shards := make([]int, len(w.loops))
	for i := range shards {
		shards[i] = i
	}
	places := w.places.Load()
	wake := func(shard int) {
		w.n.wakeups.Add(1)
		places.await(w.loops[shard]) // a worker that has no room leaves wake-ups to others
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
