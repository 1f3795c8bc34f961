package durable

import (
	"context"
	"errors"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A round is one command of a loop: reports on attempts, leases to extend, and a claim.
// If a round is not answered, its effect is unknown. The loop then repeats it until it
// is answered. It sends no other round before that, because the store remembers only
// the latest round of a sender.
type round struct {
	stamp   store.Stamp
	round   store.Round // what is sent
	reports []*report   // in the request
	renewed []*attempt  // in the request, to extend their leases
	grant   grant       // the places for the claim, until they are returned
	first   time.Time   // when the round was first sent
}

// sendRound sends the round that was not answered, or a new one with all that is due.
func (l *loop) round(p phase) {
	now := l.w.now()
	r := l.unsure
	var more func(*store.Round)
	if r == nil {
		if r = l.build(now, p); r == nil {
			return
		}
		more = func(x *store.Round) { *x = l.join(r) }
	}
	ctx, cancel := context.WithTimeout(l.w.commands, l.timeout())
	sent := r.round
	sent.More = more
	answer, err := l.w.client.store.Do(ctx, l.shard, r.stamp, sent)
	cancel()
	if errors.Is(err, store.ErrLate) {
		l.refused(r)
		return
	}
	if err != nil {
		l.unsure = r
		l.failed(err, now)
		if hopeless(err) {
			l.lost = true
			l.w.fail(err)
		}
		if l.w.stopping.Load() {
			// A Worker that shuts down does not wait for tasks of a claim that was not
			// answered.
			l.giveBack(r)
		}
		if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrInvalid) {
			l.drop(r) // the store would refuse it for ever
		}
		return
	}
	l.unsure, l.backoff, l.retryAt = nil, 0, time.Time{}
	l.known, l.knownAt = answer.Now, l.w.now()
	l.accepted(r, &answer)
	l.prolonged(r, &answer)
	if r.round.Claim.Asked {
		l.claimed(r, &answer, now)
	}
}

// answerTimeout returns how long the loop waits for an answer before it repeats the
// round.
func (l *loop) timeout() time.Duration { return max(l.w.config.lease/3, time.Second) }

// isPermanent reports whether an error of the store is permanent.
func hopeless(err error) bool {
	return errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnfit)
}

// claimDeadline returns the time, by the store's clock, when the loop stops waiting for
// the answer to a claim. The store does not carry out the claim after that. Otherwise a
// store that was frozen could carry it out before the next reports arrive, and count
// their attempts as crashed.
func (l *loop) until() store.Time {
	if l.knownAt.IsZero() {
		return 0
	}
	return l.known.Add(l.w.now().Sub(l.knownAt) + l.timeout())
}

// handleLate handles a round that reached the store after its deadline, and so has no
// effect. Its contents go into the next round. That round has no deadline, because the
// store's clock may have been set.
func (l *loop) refused(r *round) {
	l.unsure, l.backoff, l.retryAt, l.knownAt = nil, 0, time.Time{}, time.Time{}
	l.giveBack(r)
	l.mu.Lock()
	l.reports = append(r.reports, l.reports...)
	l.claim = l.claim || r.round.Claim.Asked
	l.mu.Unlock()
	l.wake()
}

// buildRound returns a round with all that is due, or nil if nothing is due.
func (l *loop) build(now time.Time, p phase) *round {
	r := &round{first: now, round: store.Round{Lease: l.w.config.lease, MaxCrashes: l.w.config.maxCrashes}}
	claim, called := l.takeReports(r)
	for _, a := range l.renewals(now) {
		r.renewed = append(r.renewed, a)
		r.round.Extend = append(r.round.Extend, a.lease)
	}
	r.round.Alone = l.places.isAlone(r.renewed)
	claim = claim || !now.Before(l.claimAt) || l.again(r) || l.limited && len(r.reports) > 0
	if p == working && (claim || called) {
		l.ask(r, now, !claim)
	}
	if len(r.reports)+len(r.renewed) == 0 && !r.round.Claim.Asked {
		return nil
	}
	l.number++
	r.stamp = store.Stamp{Sender: l.sender, Number: l.number}
	if r.round.Claim.Asked {
		r.stamp.Until = l.until()
	}
	return r
}

// takeReports moves queued reports into a round, as many as fit. It returns whether to
// claim, and whether places has offered the loop a place.
func (l *loop) takeReports(r *round) (claim, called bool) {
	l.mu.Lock()
	n := min(len(l.reports), store.MaxBatch-len(r.reports))
	some := l.reports[:n:n]
	if l.reports = l.reports[n:]; len(l.reports) == 0 {
		l.reports = nil
	}
	claim, called = l.claim, l.called
	if r.grant.places > 0 { // the round already has a claim with places
		l.claim, l.called = false, false
	}
	l.mu.Unlock()
	for _, x := range some {
		l.held.remove(x.a)
		r.round.Reports = append(r.round.Reports, x.stored())
	}
	r.reports = append(r.reports, some...)
	return claim, called
}

// addReports adds the reports that have arrived while the store delayed the round, and
// returns the round. The loop's goroutine is waiting for the store.
func (l *loop) join(r *round) store.Round {
	l.takeReports(r)
	return r.round
}

// retriesAtOnce reports whether a reported task is due again at once, so that the round
// can claim it too.
func (l *loop) again(r *round) bool {
	for _, x := range r.reports {
		micros, fromNow := x.next.Parts()
		if !x.next.IsZero() && (fromNow && micros == 0 || !fromNow && store.Time(micros) <= l.known) {
			return true
		}
	}
	return false
}

// addClaim adds a claim to the round, if a place is free. If none has been free for a
// while, the claim is for no tasks, and only makes the store wake other workers.
// offered says that the loop claims because of an offer: then there is no claim without
// a place.
func (l *loop) ask(r *round, now time.Time, called bool) {
	l.mu.Lock()
	l.claim, l.called = false, false
	l.mu.Unlock()
	g := l.places.take(l, l.w.claimBatch, called)
	if g.places == 0 {
		if called {
			return
		}
		if l.noPlace.IsZero() {
			l.noPlace = now
		}
		if now.Sub(l.noPlace) < patience {
			l.claimAt = l.noPlace.Add(patience)
			return
		}
	}
	l.noPlace = time.Time{}
	l.w.n.claims.Add(1)
	r.grant = g
	r.round.Claim = store.Claim{Asked: true, Max: g.places, Handlers: l.w.names, Schedules: l.w.schedules,
		Suspects: g.suspects, Full: g.full, Pass: g.pass}
	if !g.plain {
		r.round.Claim.Rooms = g.rooms
	}
}

// handleReceipts handles the store's receipts for reports.
func (l *loop) accepted(r *round, a *store.Answer) {
	n := &l.w.n
	for i, x := range r.reports {
		l.settled(x.a)
		x.countEnd(a.Receipts[i], a.Now)
		switch {
		case a.Receipts[i] == store.Refused:
			n.lost.Add(1)
		case x.end == store.Done:
			n.done.Add(1)
		case x.end == store.HandBack:
			n.released.Add(1)
		case a.Receipts[i] == store.Overtaken:
			n.failed.Add(1)
			n.overtaken.Add(1)
			l.w.client.log.Warn("durable: an attempt failed, but is not retried: "+
				"its task was cancelled or scheduled again meanwhile", "handler", x.a.task.Handler, "key", printable(x.a.task.Key), "error", x.text)
		default:
			n.failed.Add(1)
			if x.end != store.Retry {
				n.died.Add(1)
				l.w.dead.add(RecentDead{When: l.w.now(), Key: x.a.task.Key, Handler: x.a.task.Handler,
					Attempt: x.a.d.Attempt, Error: x.text})
				l.w.client.log.Warn("durable: a task has become a dead letter", "handler", x.a.task.Handler,
					"key", printable(x.a.task.Key), "attempt", x.a.d.Attempt, "error", x.text)
				l.w.callDeadHook(x)
			}
		}
	}
}

// handleExtensions handles the answer about leases to extend. An extended lease starts
// when the round was first sent, because the store may have carried it out then.
func (l *loop) prolonged(r *round, answer *store.Answer) {
	for i, a := range r.renewed {
		if !l.held.has(a) {
			continue // the attempt ended before the answer came
		}
		l.held.remove(a)
		switch answer.Extensions[i] {
		case store.Lost:
			l.settled(a)
			a.cancel(ErrLeaseLost)
			if l.waitsAlone == a {
				l.dismiss(a)
			}
			continue
		case store.HeldStopping:
			a.cancel(ErrCancelled)
		}
		if remaining := l.untilLeaseTimer(r.first); remaining > 0 {
			a.leaseTimer.Move(remaining)
		}
		l.held.add(a, r.first)
		if r.round.Alone && l.waitsAlone == a {
			l.waitsAlone = nil
			l.begin(a)
		}
	}
}

// handleTasks starts the tasks that a claim got. sent is when the round was last sent.
func (l *loop) claimed(r *round, answer *store.Answer, sent time.Time) {
	got, run := make([]int, len(l.w.names)), make([]int, len(l.w.names))
	running := 0
	more := wants{any: answer.Next == 0 && r.grant.places > 0, suspect: r.grant.suspects == store.NoSuspect}
	for i := range answer.Tasks {
		a := l.w.newAttempt(l, &answer.Tasks[i])
		a.claimed = answer.Now
		a.countClaim()
		more.suspect = more.suspect || a.d.Crashes > 0 // there may be more suspects than the one that it got
		runs := l.start(a, answer.Now, sent)
		if runs {
			running++
		}
		if a.handler != nil {
			got[a.handler.index]++
			if runs {
				run[a.handler.index]++
			}
		}
	}
	if len(answer.Tasks) == 0 {
		l.w.n.empty.Add(1)
	}
	l.w.n.claimed.Add(int64(len(answer.Tasks)))
	l.places.settle(l, r.grant, got, run, running, more)
	l.w.notePause(answer.Paused)
	l.limited = answer.Limited

	// answer.Next counts from when the store carried out the round. Counted from sent,
	// it ends too early, but by less than a round trip.
	l.claimAt = never
	if answer.Next > 0 { // otherwise the loop gets an offer when a place is free
		l.claimAt = sent.Add(answer.Next)
	}
}

// dropRound drops a round that the store will always refuse.
func (l *loop) drop(r *round) {
	l.giveBack(r)
	l.unsure = nil
}

// returnPlaces returns the places that were reserved for the round's claim.
func (l *loop) giveBack(r *round) {
	l.places.giveBack(l, r.grant)
	r.grant = grant{}
}

// leaveShard tells the store that the Worker no longer watches the shard. If that
// fails, other workers notice it later.
func (l *loop) leave() {
	l.timer.Stop()
	if r := l.unsure; r != nil {
		l.giveBack(r)
		return
	}
	ctx, cancel := context.WithTimeout(l.w.commands, time.Second)
	defer cancel()
	l.number++
	// The answer does not matter: the loop ends anyway.
	_, _ = l.w.client.store.Do(ctx, l.shard, store.Stamp{Sender: l.sender, Number: l.number},
		store.Round{Lease: l.w.config.lease, MaxCrashes: l.w.config.maxCrashes, Leave: true})
}
