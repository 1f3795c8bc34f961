package worker

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
	reports          []*Report    // in the request
	extendedAttempts []*Attempt   // in the request, to extend their leases
	grant            places.Grant // the places for the claim, until they are freed
	firstSentAt      time.Time    // when the round was first sent
}

// sendRound sends the round that was not answered, or a new one with all that is due.
func (l *Loop) sendRound(p Phase) {
	now := l.run.Now()
	r := l.unansweredRound
	var addMore func(*store.Round)
	if r == nil {
		if r = l.buildRound(now, p); r == nil {
			return
		}
		addMore = func(x *store.Round) { *x = l.addQueuedReports(r) }
	}
	ctx, cancel := context.WithTimeout(l.run.Commands, AnswerTimeout(l.run.Lease))
	request := r.request
	request.More = addMore
	answer, err := l.run.Store.Do(ctx, l.shard, r.stamp, request)
	cancel()
	if errors.Is(err, store.ErrLate) && r.stamp.Until != 0 {
		l.handleLateRound(r)
		return
	}
	if err != nil {
		l.unansweredRound = r
		l.delayRetry(err, now)
		if IsPermanent(err) {
			l.storeFailed = true
			l.run.Fail(err)
		}
		if l.run.stopping.Load() {
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
	l.storeTime, l.answeredAt = answer.Now, l.run.Now()
	l.handleReceipts(r, &answer)
	l.handleExtensions(r, &answer)
	if r.request.Claim.Asked {
		l.handleTasks(r, &answer, now)
	}
}

// claimDeadline returns the deadline for a claim's arrival at the store, by the store's
// clock. Zero means no deadline. A late claim could count attempts as crashed whose
// reports are on their way.
func (l *Loop) claimDeadline() store.Time {
	if l.answeredAt.IsZero() {
		return 0
	}
	return l.storeTime.Add(l.run.Now().Sub(l.answeredAt) + AnswerTimeout(l.run.Lease))
}

// handleLateRound handles a round that arrived after its deadline: its contents go into
// the next round. The next round has no deadline, so that the store cannot refuse it
// too.
func (l *Loop) handleLateRound(r *round) {
	l.unansweredRound, l.backoff, l.retryAt, l.answeredAt = nil, 0, time.Time{}, time.Time{}
	l.freeClaimPlaces(r)
	l.mu.Lock()
	l.reports = append(r.reports, l.reports...)
	l.claimNow = l.claimNow || r.request.Claim.Asked
	l.mu.Unlock()
	l.wake()
}

// buildRound returns a round with all that is due, or nil if nothing is due.
func (l *Loop) buildRound(now time.Time, p Phase) *round {
	r := &round{firstSentAt: now, request: l.newRequest()}
	mustClaim, hasOffer := l.takeQueuedReports(r)
	for _, a := range l.leasesToExtend(now) {
		r.extendedAttempts = append(r.extendedAttempts, a)
		r.request.Extend = append(r.request.Extend, a.Lease)
	}
	mustClaim = mustClaim || !now.Before(l.claimAt) || l.hasImmediateRetry(r) || l.limitReached && len(r.reports) > 0
	if p == Working && (mustClaim || hasOffer) {
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

func (l *Loop) newRequest() store.Round {
	return store.Round{Lease: l.run.Lease, MaxCrashes: l.run.MaxCrashes, Worker: l.run.Number, About: l.run.About}
}

// hasImmediateRetry reports whether a reported task is due immediately, so that the
// round can claim it too.
func (l *Loop) hasImmediateRetry(r *round) bool {
	for _, x := range r.reports {
		micros, fromNow := x.Next.Parts()
		if !x.Next.IsZero() && (fromNow && micros == 0 || !fromNow && store.Time(micros) <= l.storeTime) {
			return true
		}
	}
	return false
}

// addClaim adds a claim to the round if a place is free. isOffer says that the loop
// claims because of an offer.
//
// Otherwise a claim that is due waits for a place: the pool then makes an offer. If none comes
// for maxPlaceWait, the next round claims without a place, with a Max of 0. That claim gets no
// tasks, but the store wakes other workers for them, and ends expired leases.
func (l *Loop) addClaim(r *round, now time.Time, isOffer bool) {
	l.mu.Lock()
	l.claimNow, l.hasOffer = false, false
	l.mu.Unlock()
	g := l.run.Pool.Reserve(l.claimer, l.run.PlacesPerClaim, isOffer)
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
	l.run.Counters.Claims.Add(1)
	r.grant = g
	c := g.Claim
	c.Asked, c.Handlers, c.Schedules = true, l.run.Handlers, l.run.Schedules
	r.request.Claim = c
}

// handleTasks starts the claimed tasks. sentAt is when the round was last sent.
func (l *Loop) handleTasks(r *round, answer *store.Answer, sentAt time.Time) {
	for i := range answer.Tasks {
		a, earlyReport := l.run.Claimed(&answer.Tasks[i], answer.Now)
		r.grant.Count(a.Handler, l.startAttempt(a, earlyReport, sentAt), answer.Tasks[i].Suspect)
	}
	if len(answer.Tasks) == 0 {
		l.run.Counters.Empty.Add(1)
	}
	l.run.Counters.Claimed.Add(int64(len(answer.Tasks)))
	r.grant.MoreDue, r.grant.Waiting = answer.Next == 0, answer.Suspects
	l.run.Pool.Settle(l.claimer, &r.grant)
	l.run.Paused(l.shard, answer.Paused, answer.PausedHandlers)
	l.limitReached = answer.Limited

	// answer.Next counts from when the store carried out the round. claimAt counts from
	// sentAt, so the claim may be early by up to a round trip.
	switch {
	case answer.Next > 0:
		l.claimAt = sentAt.Add(answer.Next)
	case answer.Next == 0:
		// The loop gets an offer when a place is free. If that takes long, it claims without
		// a place: the store then returns the tasks of workers that have died.
		l.claimAt = sentAt.Add(l.run.Lease)
	default:
		l.claimAt = never
	}
}

// dropRound drops a round that the store will always refuse. The next one may be another, so
// the loop claims again after a pause.
func (l *Loop) dropRound(r *round) {
	l.freeClaimPlaces(r)
	l.unansweredRound = nil
	if r.request.Claim.Asked {
		l.claimAt = l.retryAt
	}
}

func (l *Loop) freeClaimPlaces(r *round) {
	l.run.Pool.Settle(l.claimer, &r.grant)
	r.grant = places.Grant{}
}

// leaveShard tells the store that the Worker no longer watches the shard. If that
// fails, other workers notice it later.
func (l *Loop) leaveShard() {
	l.timer.Stop()
	if r := l.unansweredRound; r != nil {
		l.freeClaimPlaces(r)
		return
	}
	ctx, cancel := context.WithTimeout(l.run.Commands, time.Second)
	defer cancel()
	l.lastCommandNumber++
	request := l.newRequest()
	request.Leave = true
	// The answer does not matter: the loop ends anyway.
	_, _ = l.run.Store.Do(ctx, l.shard, store.Stamp{Sender: l.senderName, Number: l.lastCommandNumber},
		request)
}
