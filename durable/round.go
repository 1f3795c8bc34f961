package durable

import (
	"context"
	"errors"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
)

// A round is the command that a loop sends to its shard. It reports how attempts ended,
// extends leases, and claims tasks.
//
// The loop sends a round again until the store answers. The next round must wait for the
// answer, because the store remembers only a sender's latest round.
type round struct {
	stamp            store.Stamp  // identifies the round, by its sender and a number
	request          store.Round  // what is sent
	reports          []*report    // in the request
	extendedAttempts []*attempt   // in the request, to extend their leases
	grant            places.Grant // the places for the claim, until they are freed
	firstSentAt      time.Time    // when the round was first sent
}

// sendRound sends the round that was not answered, or a new one with all that is due.
func (l *shardLoop) sendRound(p phase) {
	now := l.w.now()
	r := l.unansweredRound
	var addMore func(*store.Round)
	if r == nil {
		if r = l.buildRound(now, p); r == nil {
			return
		}
		addMore = func(x *store.Round) { *x = l.addQueuedReports(r) }
	}
	ctx, cancel := context.WithTimeout(l.w.commandCtx, l.answerTimeout())
	request := r.request
	request.More = addMore
	answer, err := l.w.client.store.Do(ctx, l.shard, r.stamp, request)
	cancel()
	if errors.Is(err, store.ErrLate) {
		l.handleLateRound(r)
		return
	}
	if err != nil {
		l.unansweredRound = r
		l.delayRetry(err, now)
		if isPermanent(err) {
			l.storeFailed = true
			l.w.failRun(err)
		}
		if l.w.isStopping.Load() {
			// A Worker that shuts down needs no more tasks: free the places that were
			// reserved for them.
			l.freeClaimPlaces(r)
		}
		if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrInvalid) {
			l.dropRound(r) // the store would refuse it for ever
		}
		return
	}
	l.unansweredRound, l.backoff, l.retryAt = nil, 0, time.Time{}
	l.storeTime, l.answeredAt = answer.Now, l.w.now()
	l.handleReceipts(r, &answer)
	l.handleExtensions(r, &answer)
	if r.request.Claim.Asked {
		l.handleTasks(r, &answer, now)
	}
}

// answerTimeout returns how long the loop waits for an answer before it repeats the
// round.
func (l *shardLoop) answerTimeout() time.Duration { return l.w.answerTimeout() }

func (w *Worker) answerTimeout() time.Duration { return max(w.config.lease/3, time.Second) }

// isPermanent reports whether an error of the store is permanent.
func isPermanent(err error) bool {
	return errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnfit)
}

// claimDeadline returns the deadline for a claim's arrival at the store, by the store's
// clock. Zero means no deadline. A late claim could count attempts as crashed whose
// reports are on their way.
func (l *shardLoop) claimDeadline() store.Time {
	if l.answeredAt.IsZero() {
		return 0
	}
	return l.storeTime.Add(l.w.now().Sub(l.answeredAt) + l.answerTimeout())
}

// handleLateRound handles a round that arrived after its deadline: its contents go into
// the next round. The next round has no deadline, so that the store cannot refuse it
// too.
func (l *shardLoop) handleLateRound(r *round) {
	l.unansweredRound, l.backoff, l.retryAt, l.answeredAt = nil, 0, time.Time{}, time.Time{}
	l.freeClaimPlaces(r)
	l.mu.Lock()
	l.reports = append(r.reports, l.reports...)
	l.claimNow = l.claimNow || r.request.Claim.Asked
	l.mu.Unlock()
	l.wake()
}

// buildRound returns a round with all that is due, or nil if nothing is due.
func (l *shardLoop) buildRound(now time.Time, p phase) *round {
	r := &round{firstSentAt: now, request: l.newRequest()}
	mustClaim, hasOffer := l.takeQueuedReports(r)
	for _, a := range l.leasesToExtend(now) {
		r.extendedAttempts = append(r.extendedAttempts, a)
		r.request.Extend = append(r.request.Extend, a.lease)
	}
	mustClaim = mustClaim || !now.Before(l.claimAt) || l.hasImmediateRetry(r) || l.limitReached && len(r.reports) > 0
	if p == phaseWorking && (mustClaim || hasOffer) {
		l.addClaim(r, now, !mustClaim)
	}
	if len(r.reports)+len(r.extendedAttempts) == 0 && !r.request.Claim.Asked {
		return nil
	}
	l.lastCommandNumber++
	r.stamp = store.Stamp{Sender: l.senderName, Number: l.lastCommandNumber}
	if r.request.Claim.Asked {
		r.stamp.Until = l.claimDeadline()
	}
	return r
}

// newRequest returns a round without contents.
func (l *shardLoop) newRequest() store.Round {
	return store.Round{Lease: l.w.config.lease, MaxCrashes: l.w.config.maxCrashes, Worker: l.w.number, About: l.w.about}
}

// takeQueuedReports moves queued reports into a round, as many as fit. It returns
// whether to claim, and whether the loop was offered a place.
//
// An offer that comes after the round has got its places stays: only the next claim gives
// the place back that is reserved with it.
func (l *shardLoop) takeQueuedReports(r *round) (mustClaim, hasOffer bool) {
	l.mu.Lock()
	n := min(len(l.reports), store.MaxBatch-len(r.reports))
	newReports := l.reports[:n:n]
	if l.reports = l.reports[n:]; len(l.reports) == 0 {
		l.reports = nil
	}
	mustClaim, hasOffer = l.claimNow, l.hasOffer
	if r.grant.Claim.Max > 0 { // the round already has a claim with places
		l.claimNow = false
	}
	l.mu.Unlock()
	for _, x := range newReports {
		l.leases.remove(x.attempt)
		r.request.Reports = append(r.request.Reports, x.storeReport())
	}
	r.reports = append(r.reports, newReports...)
	return mustClaim, hasOffer
}

// addQueuedReports adds the reports that were queued while the store delayed the round,
// and returns the round. Nothing else uses the round then, because the loop waits for
// the store.
func (l *shardLoop) addQueuedReports(r *round) store.Round {
	l.takeQueuedReports(r)
	return r.request
}

// hasImmediateRetry reports whether a reported task is due immediately, so that the
// round can claim it too.
func (l *shardLoop) hasImmediateRetry(r *round) bool {
	for _, x := range r.reports {
		micros, fromNow := x.next.Parts()
		if !x.next.IsZero() && (fromNow && micros == 0 || !fromNow && store.Time(micros) <= l.storeTime) {
			return true
		}
	}
	return false
}

// addClaim adds a claim to the round if a place is free. isOffer says that the loop
// claims because of an offer. Otherwise, if no place has been free for maxPlaceWait, it
// adds a claim for no tasks: the store then wakes other workers.
func (l *shardLoop) addClaim(r *round, now time.Time, isOffer bool) {
	l.mu.Lock()
	l.claimNow, l.hasOffer = false, false
	l.mu.Unlock()
	g := l.pool.Reserve(l.claimer, l.w.maxPlacesPerClaim, isOffer)
	if g.Claim.Max == 0 {
		if isOffer {
			return
		}
		if l.noPlaceSince.IsZero() {
			l.noPlaceSince = now
		}
		if now.Sub(l.noPlaceSince) < maxPlaceWait {
			l.claimAt = l.noPlaceSince.Add(maxPlaceWait)
			return
		}
	}
	l.noPlaceSince = time.Time{}
	l.w.counters.claims.Add(1)
	r.grant = g
	c := g.Claim
	c.Asked, c.Handlers, c.Schedules = true, l.w.handlerNames, l.w.scheduleNames
	r.request.Claim = c
}

func (l *shardLoop) handleReceipts(r *round, a *store.Answer) {
	n := &l.w.counters
	for i, x := range r.reports {
		l.dropLease(x.attempt)
		x.countReport(a.Receipts[i], a.Now)
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
				"its task was cancelled or scheduled again meanwhile", "handler", x.attempt.task.Handler, "key", printableKey(x.attempt.task.Key), "error", x.text)
		default:
			n.failed.Add(1)
			if x.end != store.Retry {
				n.died.Add(1)
				l.w.recentDead.addDead(RecentDead{When: l.w.now(), Key: x.attempt.task.Key, Handler: x.attempt.task.Handler,
					Attempt: x.attempt.delivery.Attempt, Error: x.text})
				l.w.client.log.Warn("durable: a task has become a dead letter", "handler", x.attempt.task.Handler,
					"key", printableKey(x.attempt.task.Key), "attempt", x.attempt.delivery.Attempt, "error", x.text)
				l.w.callDeadHook(x)
			}
		}
	}
}

// handleExtensions records which leases were extended. They count from when the round
// was first sent: the store may have carried out the round then.
func (l *shardLoop) handleExtensions(r *round, answer *store.Answer) {
	for i, a := range r.extendedAttempts {
		if !l.leases.contains(a) {
			continue // the attempt ended before the answer came
		}
		l.leases.remove(a)
		switch answer.Extensions[i] {
		case store.Lost:
			l.dropLease(a)
			a.cancel(ErrLeaseLost)
			a.place.Crash()
			continue
		case store.HeldStopping:
			a.cancel(ErrCancelled)
		}
		if leaseTimerDelay := l.leaseTimerDelay(r.firstSentAt); leaseTimerDelay > 0 {
			a.leaseTimer.Move(leaseTimerDelay)
		}
		l.leases.addLast(a, r.firstSentAt)
	}
}

// handleTasks starts the claimed tasks. sentAt is when the round was last sent.
func (l *shardLoop) handleTasks(r *round, answer *store.Answer, sentAt time.Time) {
	for i := range answer.Tasks {
		a := l.w.newAttempt(l, &answer.Tasks[i])
		a.claimedAt = answer.Now
		a.countClaim()
		r.grant.Count(a.handlerIndex(), l.startAttempt(a, answer.Now, sentAt), a.isSuspect)
	}
	if len(answer.Tasks) == 0 {
		l.w.counters.empty.Add(1)
	}
	l.w.counters.claimed.Add(int64(len(answer.Tasks)))
	r.grant.MoreDue, r.grant.Waiting = answer.Next == 0, answer.Suspects
	l.pool.Settle(l.claimer, &r.grant)
	l.w.logPause(answer.Paused)
	l.logPausedHandlers(answer.PausedHandlers)
	l.limitReached = answer.Limited

	// answer.Next counts from when the store carried out the round. claimAt counts from
	// sentAt, so the claim may be early by up to a round trip.
	switch {
	case answer.Next > 0:
		l.claimAt = sentAt.Add(answer.Next)
	case answer.Next == 0:
		// The loop gets an offer when a place is free. If that takes long, it claims without
		// a place: the store then returns the tasks of workers that have died.
		l.claimAt = sentAt.Add(l.w.config.lease)
	default:
		l.claimAt = never
	}
}

// dropRound drops a round that the store will always refuse. The next one may be another, so
// the loop claims again after a pause.
func (l *shardLoop) dropRound(r *round) {
	l.freeClaimPlaces(r)
	l.unansweredRound = nil
	if r.request.Claim.Asked {
		l.claimAt = l.retryAt
	}
}

// freeClaimPlaces frees the places that were reserved for the round's claim.
func (l *shardLoop) freeClaimPlaces(r *round) {
	l.pool.Settle(l.claimer, &r.grant)
	r.grant = places.Grant{}
}

// leaveShard tells the store that the Worker no longer watches the shard. If that
// fails, other workers notice it later.
func (l *shardLoop) leaveShard() {
	l.timer.Stop()
	if r := l.unansweredRound; r != nil {
		l.freeClaimPlaces(r)
		return
	}
	ctx, cancel := context.WithTimeout(l.w.commandCtx, time.Second)
	defer cancel()
	l.lastCommandNumber++
	request := l.newRequest()
	request.Leave = true
	// The answer does not matter: the loop ends anyway.
	_, _ = l.w.client.store.Do(ctx, l.shard, store.Stamp{Sender: l.senderName, Number: l.lastCommandNumber},
		request)
}
