package redistimer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/timer"
)

// A loop is a Worker's part for one shard: one goroutine that does all the
// commands there, one round after the other. A round is a pipeline of reports on
// what was run, of leases to prolong, and of a claim. What comes while it is
// under way waits for the next, so that the rounds grow with the load.
type loop struct {
	w     *Worker
	sh    *shard
	slots *slots
	// gather sends the rounds, if there is one server.
	gather *gatherer
	open   *atomic.Int64 // the Worker's, of this Run

	// signal has an element if there may be something to do.
	signal chan struct{}
	// inLine is guarded by the Worker's slots.
	inLine bool

	mu      sync.Mutex
	reports []*report // to be sent
	claim   bool      // claim, whatever the time
	look    time.Time // claim at this time at the latest; zero if nobody has said
	phase   phase

	// All below is the goroutine's alone.

	timer   timer.Handle
	claimAt time.Time // when to claim next
	held    leases
	stuck   []*dispatch // reports without an answer
	senders []*dispatch // what is free to be used again, for its sender
	made    int         // how many dispatches there are
	backoff time.Duration
	retryAt time.Time // no command before it; zero after a success

	// A claim without an answer is repeated with its number and its places. Asking
	// is whether there is one, and number that of the latest.
	asking  bool
	number  int64
	places  int
	full    bool // there were no more places
	claimed bool // it has had an answer to a claim
	large   bool // the last one got all that it could: the next round waits for nobody
	// noPlace is since when a claim waits for a place; zero if none does.
	noPlace time.Time
}

// A dispatch is a batch of reports. It is sent with the same number until it is
// answered, so that what was accepted is not refused when it comes again. Those
// under way at a time are different senders: see command.go.
type dispatch struct {
	header  header
	reports []*report
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
	// backup is how much later than a task is due a worker looks for it that does
	// not watch the shard, and up to as much more, so that they do not all look at
	// once.
	backup = 250 * time.Millisecond
	// firstBackoff and lastBackoff bound the pauses after commands that failed.
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
	// patience is how long a loop waits for a place before it has other workers
	// woken for what it cannot take.
	patience = 10 * time.Millisecond
	// flush is how long a Worker that shuts down tries to send its reports.
	flush = 5 * time.Second
	// maxClaim is the largest number of tasks that a claim gets.
	maxClaim = 100
)

// claimSoon has the loop claim. A nil loop is left alone.
func (l *loop) claimSoon() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.claim = true
	l.mu.Unlock()
	l.wake()
}

// claimLater has the loop claim a little later, in case nobody else does.
func (l *loop) claimLater() {
	at := time.Now().Add(backup + rand.N(backup))
	l.mu.Lock()
	first := l.look.IsZero()
	if first {
		l.look = at
	}
	l.mu.Unlock()
	if first {
		l.wake()
	}
}

func (l *loop) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
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

// enter has the loop enter a phase.
func (l *loop) enter(p phase) {
	l.mu.Lock()
	l.phase = p
	l.mu.Unlock()
	l.wake()
}

// run is the goroutine.
func (l *loop) run() {
	l.claimAt = time.Now()
	l.wake()
	var end time.Time // of a loop that closes
	for range l.signal {
		now := time.Now()
		l.mu.Lock()
		claim, phase := l.claim, l.phase
		if !l.look.IsZero() && l.look.Before(l.claimAt) {
			l.claimAt = l.look
		}
		l.mu.Unlock()
		if phase == abandoned {
			return
		}
		l.abort(phase)
		if phase == closing {
			if end.IsZero() {
				end = now.Add(flush)
			}
			if l.finishedAll() || now.After(end) {
				l.leave()
				return
			}
		}
		if now.Before(l.retryAt) {
			l.arm(l.retryAt.Sub(now))
			continue
		}
		if l.idle(now, phase, claim) {
			l.rearm(phase)
			continue
		}
		l.round(phase)
		l.rearm(phase)
	}
}

// idle reports whether there is nothing to do now.
func (l *loop) idle(now time.Time, p phase, claim bool) bool {
	if p == working && (claim || !now.Before(l.claimAt)) || p != working && l.asking || len(l.stuck) > 0 {
		return false
	}
	if a := l.held.first(); a != nil && now.Sub(a.renewed) >= l.w.config.lease/3 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0
}

// abort does to the attempts under way what the phase asks for.
func (l *loop) abort(p phase) {
	if p < aborting {
		return
	}
	for a := l.held.first(); a != nil; a = a.next {
		a.cancel(ErrShutdown)
		if p >= handing {
			l.report(&report{a: a, op: "b"})
		}
	}
}

// finishedAll reports whether there is nothing left to send.
func (l *loop) finishedAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reports) == 0 && len(l.stuck) == 0 && !l.asking
}

// arm has the loop run after d.
func (l *loop) arm(d time.Duration) {
	d = max(d, 0)
	if !l.timer.Reset(d) {
		l.timer, _ = l.w.timers.Start(d, l.wake)
	}
}

// rearm sets the timer for what comes next.
func (l *loop) rearm(p phase) {
	if p == closing {
		l.wake()
		return
	}
	at := l.claimAt
	if p != working {
		at = time.Now().Add(l.w.config.safety)
	}
	if a := l.held.first(); a != nil {
		if renew := a.renewed.Add(l.w.config.lease / 3); renew.Before(at) {
			at = renew
		}
	}
	if at.Before(l.retryAt) {
		at = l.retryAt
	}
	l.arm(time.Until(at))
}

// round does one round: it sends what there is, and takes the answers.
func (l *loop) round(p phase) {
	var r round
	build := func(now time.Time) []call {
		r = l.build(now, p)
		return r.calls
	}
	var cmds []*redis.Cmd
	var sent time.Time
	if l.gather != nil {
		cmds, sent = l.gather.run(l.large, build)
	} else {
		sent = time.Now()
		cmds = l.w.client.runAny(build(sent))
	}
	if len(cmds) > 0 {
		l.answered(&r, cmds, sent)
	}
}

// A round is what a loop sends at once.
type round struct {
	calls      []call // of the dispatches, of renewals, and of a claim
	dispatches []*dispatch
	renewals   []*attempt
	extends    int // the calls up to here prolong leases, from the dispatches' on
	claim      bool
}

// build makes a round of all that there is to do.
func (l *loop) build(now time.Time, p phase) (r round) {
	l.mu.Lock()
	claim, reports := l.claim, l.reports
	l.reports = nil
	l.mu.Unlock()
	if p != working {
		// Only to know what a claim did that was not answered.
		r.claim = l.asking
	} else {
		r.claim = (claim || !now.Before(l.claimAt)) && l.takePlaces(now)
	}
	if r.claim {
		l.mu.Lock()
		l.claim, l.look = false, time.Time{}
		l.mu.Unlock()
	}
	for _, x := range reports {
		l.held.remove(x.a)
	}
	r.dispatches = l.stuck
	l.stuck = nil
	for i := 0; i < len(reports); i += maxBatch {
		r.dispatches = append(r.dispatches, l.dispatch(reports[i:min(i+maxBatch, len(reports))]))
	}

	for _, d := range r.dispatches {
		r.calls = append(r.calls, call{finishScript, l.sh, finishArgs(d.reports), d.header})
	}
	r.renewals = l.renewals(now)
	for i := 0; i < len(r.renewals); i += maxBatch {
		some := r.renewals[i:min(i+maxBatch, len(r.renewals))]
		args := make([]any, 0, 1+2*len(some))
		args = append(args, l.w.config.lease.Microseconds())
		for _, a := range some {
			args = append(args, a.d.id, a.token)
		}
		r.calls = append(r.calls, call{script: extendScript, shard: l.sh, args: args})
	}
	r.extends = len(r.calls)
	if r.claim {
		r.calls = append(r.calls, l.claimCall())
	}
	return r
}

// answered takes the answers to a round.
func (l *loop) answered(r *round, cmds []*redis.Cmd, sent time.Time) {
	dispatches, renewals, extends, now := r.dispatches, r.renewals, r.extends, sent
	var failed error
	for i, cmd := range cmds[:len(dispatches)] {
		d := dispatches[i]
		if err := l.finished(d.reports, cmd); err != nil {
			failed = err
			l.stuck = append(l.stuck, d)
		} else {
			d.reports = nil
			l.senders = append(l.senders, d)
		}
	}
	for i, cmd := range cmds[len(dispatches):extends] {
		some := renewals[i*maxBatch : min((i+1)*maxBatch, len(renewals))]
		if err := l.renewed(some, cmd, sent); err != nil {
			failed = err
		}
	}
	if r.claim {
		if err := l.answer(cmds[extends], sent); err != nil {
			failed = err
			l.claimAt = sent // as soon as commands work again
			if l.w.stopping.Load() {
				// Whatever it got: the leases will run out.
				l.slots.put(l.places)
				l.asking, l.places = false, 0
			}
		}
	}
	l.outcome(failed, now)
}

// outcome lengthens or ends the pause between commands.
func (l *loop) outcome(err error, now time.Time) {
	if err == nil {
		l.backoff, l.retryAt = 0, time.Time{}
		return
	}
	l.w.n.errors.Add(1)
	l.w.complain(err)
	l.w.doubt()
	l.backoff = min(max(2*l.backoff, firstBackoff), lastBackoff)
	l.retryAt = now.Add(l.backoff/2 + rand.N(l.backoff/2+1))
}

// dispatch makes one of reports.
func (l *loop) dispatch(reports []*report) *dispatch {
	var d *dispatch
	if n := len(l.senders); n > 0 {
		d, l.senders = l.senders[n-1], l.senders[:n-1]
	} else {
		d = &dispatch{header: header{sender: l.w.sender() + "." + strconv.Itoa(l.made)}}
		l.made++
	}
	d.header.number = l.w.client.next(d.header.number)
	d.reports = reports
	return d
}

func finishArgs(reports []*report) []any {
	args := make([]any, 0, 6*len(reports))
	for _, r := range reports {
		args = append(args, r.op, r.a.d.id, r.a.token, r.when, r.a.due, r.text)
	}
	return args
}

// finished takes the answer to reports.
func (l *loop) finished(reports []*report, cmd *redis.Cmd) error {
	accepted, err := digits(cmd, len(reports))
	if err != nil {
		return l.w.client.explain(err)
	}
	n := &l.w.n
	for i, r := range reports {
		l.settled(r.a)
		switch {
		case accepted[i] == '0':
			n.lost.Add(1)
		case r.op == "d":
			n.done.Add(1)
		case r.op == "b":
			n.released.Add(1)
		case r.op == "u":
			n.unknown.Add(1)
			l.w.unknown(r.a)
		default:
			n.failed.Add(1)
			if r.op == "x" || r.op == "m" {
				n.died.Add(1)
				l.w.client.config.log.Warn("redistimer: a task has become a dead letter", "handler", r.a.task.Handler,
					"key", printable(r.a.task.Key), "attempt", r.a.d.Attempt, "error", r.text)
			}
		}
	}
	return nil
}

// takePlaces takes places for a claim, and reports whether it is time for one.
// Without a place it is, after a while, so that others get what is due.
func (l *loop) takePlaces(now time.Time) bool {
	if l.asking {
		return true // an earlier claim's answer is missing, and it has its places
	}
	l.places, l.full = l.slots.take(l, l.w.claimBatch)
	if l.places > 0 {
		l.noPlace = time.Time{}
		return true
	}
	if l.noPlace.IsZero() {
		l.noPlace = now
	}
	if now.Sub(l.noPlace) < patience {
		l.claimAt = l.noPlace.Add(patience)
		l.mu.Lock()
		l.claim = false
		l.mu.Unlock()
		return false
	}
	l.noPlace = time.Time{}
	return true
}

// claimCall is the claim, or an earlier one again that was not answered.
func (l *loop) claimCall() call {
	if !l.asking {
		l.number = l.w.client.next(l.number)
		l.asking = true
	}
	n := l.places
	if l.w.stopping.Load() {
		n = 0
	}
	l.w.n.claims.Add(1)
	return l.claimOf(n, bit(!l.claimed), bit(l.full))
}

func (l *loop) claimOf(n, force, full int) call {
	c := &l.w.config
	return call{
		script: claimScript,
		shard:  l.sh,
		args:   []any{n, c.lease.Microseconds(), c.maxCrashes, force, full},
		header: header{sender: l.w.sender(), number: l.number},
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// answer takes the answer to a claim: see scripts/claim.lua.
func (l *loop) answer(cmd *redis.Cmd, sent time.Time) error {
	v, err := cmd.Slice()
	if err != nil {
		return l.w.client.explain(err)
	}
	const head, lists = 5, 4
	if len(v) != head+lists {
		return fmt.Errorf("redistimer: unexpected answer of a script: %v", v)
	}
	n, err := ints(v[:head], head)
	if err != nil {
		return err
	}
	own, wait, ending, now, base := n[0], n[1], n[2], n[3], n[4]
	ids, _ := v[head].([]any)
	scores, _ := v[head+1].([]any)
	records, _ := v[head+2].([]any)
	runs, _ := v[head+3].([]any)
	if len(scores) != len(ids) || len(records) != len(ids) || len(runs) != len(ids) {
		return fmt.Errorf("redistimer: unexpected answer of a script: %v", v)
	}
	var attempts []*attempt
	for i := range ids {
		record, ok := records[i].(string)
		if !ok {
			continue
		}
		id, _ := ids[i].(string)
		var r run
		if s, ok := runs[i].(string); ok {
			r = parseRun(s)
		} else {
			s, _ := scores[i].(string)
			r.due = parseTime(s)
		}
		attempts = append(attempts, l.w.newAttempt(l, id, record, base+int64(i), r))
	}
	places := l.places
	l.asking, l.places, l.claimed = false, 0, true
	for _, a := range attempts {
		l.begin(a, now, sent)
	}

	got := len(attempts)
	l.large = got > 0 && got == places // it has more to do than fits
	if got == 0 {
		l.w.n.empty.Add(1)
	}
	l.w.n.claimed.Add(int64(got))
	l.slots.put(places - got)

	// What was measured in the server was measured after sent: whoever counts
	// from there comes rather too early than too late, by less than a round trip.
	l.claimAt = sent.Add(min(l.w.config.safety, l.w.config.lease))
	soon := func(us int64, more time.Duration) {
		if us < 0 {
			return
		}
		if at := sent.Add(time.Duration(us)*time.Microsecond + more); at.Before(l.claimAt) {
			l.claimAt = at
		}
	}
	switch {
	case wait == 0 && places == 0:
		// The slots call when there are places.
	case own == 1 || wait == 0:
		soon(wait, 0)
	default:
		soon(wait, backup+rand.N(backup))
	}
	soon(ending, time.Millisecond+rand.N(backup))
	return nil
}

// begin starts an attempt whose lease was given after sent.
func (l *loop) begin(a *attempt, now int64, sent time.Time) {
	w := l.w
	l.held.add(a, sent)
	a.open = true
	l.open.Add(1)
	ctx, cancel := context.WithCancelCause(w.ctx)
	a.ctx, a.cancel = ctx, cancel
	early := a.prepare(now)
	left := l.untilCut(sent)
	if w.stopping.Load() || left <= 0 {
		early = &report{a: a, op: "b"}
	}
	if early != nil {
		cancel(context.Canceled)
		l.report(early)
		l.slots.put(1)
		return
	}
	a.hangs = sent.Add(a.timeout() + w.config.lease)
	a.cut, _ = w.timers.Start(left, func() { cancel(ErrLeaseLost) })
	go a.run()
}

// settled says that the attempt's lease is not the Worker's any more.
func (l *loop) settled(a *attempt) {
	if a.open {
		a.open = false
		l.open.Add(-1)
	}
}

// untilCut is the time until contexts are cancelled whose leases were prolonged
// by a command that was sent at a time: a tenth of the lease before its end.
func (l *loop) untilCut(sent time.Time) time.Duration {
	return time.Until(sent.Add(l.w.config.lease - l.w.config.lease/10))
}

// renewals returns the attempts whose leases are to be prolonged.
func (l *loop) renewals(now time.Time) []*attempt {
	var out []*attempt
	for a := l.held.first(); a != nil && now.Sub(a.renewed) >= l.w.config.lease/3; {
		next := a.next
		if !a.hangs.IsZero() && now.After(a.hangs) {
			// It does not return although its time is long up. What it holds goes to
			// another worker as soon as the lease has run out.
			l.held.remove(a)
			l.settled(a)
			l.w.client.config.log.Error("redistimer: a handler does not return; its lease is given up",
				"handler", a.task.Handler, "key", printable(a.task.Key))
		} else {
			out = append(out, a)
		}
		a = next
	}
	return out
}

// renewed takes the answer to renewals.
func (l *loop) renewed(attempts []*attempt, cmd *redis.Cmd, sent time.Time) error {
	n, err := digits(cmd, len(attempts))
	if err != nil {
		return l.w.client.explain(err)
	}
	for i, a := range attempts {
		switch n[i] {
		case '0':
			l.held.remove(a)
			l.settled(a)
			a.cancel(ErrLeaseLost)
			continue
		case '2':
			a.cancel(ErrCancelled)
		}
		a.cut.Reset(l.untilCut(sent))
		l.held.remove(a)
		l.held.add(a, sent)
	}
	return nil
}

// leave ends the loop, and tells the server that it does not watch the shard any
// more. If that fails, the others notice by themselves.
func (l *loop) leave() {
	l.timer.Stop()
	l.slots.put(l.places)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if len(l.stuck) == 0 && l.claimed {
		l.number = l.w.client.next(l.number)
		l.w.client.run(ctx, l.claimOf(-1, 0, 0))
	}
}

// leases are a loop's attempts under way, the one whose lease was prolonged
// longest ago first.
type leases struct{ head, tail *attempt }

func (s *leases) first() *attempt { return s.head }

func (s *leases) add(a *attempt, renewed time.Time) {
	a.renewed = renewed
	a.prev, a.next = s.tail, nil
	if s.tail != nil {
		s.tail.next = a
	} else {
		s.head = a
	}
	s.tail = a
}

// remove removes an attempt, or does nothing if it is not there.
func (s *leases) remove(a *attempt) {
	if a.prev == nil && s.head != a {
		return
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		s.head = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		s.tail = a.prev
	}
	a.prev, a.next = nil, nil
}
