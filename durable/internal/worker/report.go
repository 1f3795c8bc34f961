package worker

import (
	"github.com/tickless/tickless/durable/store"
)

// A Report is what a Loop tells the store about an attempt.
type Report struct {
	store.Report
	Attempt *Attempt
	Err     error // the full error of a failed attempt
}

// Reasons for which a Worker hands a task back.
const (
	ReasonShutdown  = "the worker shut down"
	ReasonLeaseEnds = "the lease was about to end before the handler began"
)

// handBack returns a report that hands the task back to the store. The attempt does not count.
func (a *Attempt) handBack(reason string) *Report {
	return &Report{Attempt: a, Report: store.Report{Lease: a.Lease, End: store.HandBack, Due: a.Due, Text: reason, Keep: a.Keep}}
}

// queueReport queues the report on an attempt, unless one is queued already.
func (l *Loop) queueReport(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queueReportLocked(r)
}

// queueReportLocked wakes the loop only for a new report: a loop that hands attempts back
// queues them in each step, and would never sleep while the store does not answer.
func (l *Loop) queueReportLocked(r *Report) {
	if r.Attempt.reportQueued {
		return
	}
	r.Attempt.reportQueued = true
	l.reports = append(l.reports, r)
	l.wake()
}

// End ends an attempt: it queues the report, unless the task was handed back already, and
// releases the place. It does both under Loop.mu, so that one round can send the report and use
// the place. hasRun says that the handler was called, and has returned.
func (a *Attempt) End(r *Report, hasRun bool) {
	a.leaseTimer.Stop()
	a.Cancel(nil)
	a.loop.mu.Lock()
	a.loop.queueReportLocked(r)
	next := a.Place.Release(hasRun)
	a.loop.mu.Unlock()
	next.Offer()
}

// takeQueuedReports moves queued reports into a round, as many as fit. It returns
// whether to claim, and whether the loop was offered a place.
//
// An offer that comes after the round has got its places stays: only the next claim gives
// the place back that is reserved with it.
func (l *Loop) takeQueuedReports(r *round) (mustClaim, hasOffer bool) {
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
		l.removeLease(x.Attempt)
		r.request.Reports = append(r.request.Reports, x.Report)
	}
	r.reports = append(r.reports, newReports...)
	return mustClaim, hasOffer
}

// addQueuedReports adds the reports that were queued while the store delayed the round,
// and returns the round. Nothing else uses the round then, because the loop waits for
// the store.
func (l *Loop) addQueuedReports(r *round) store.Round {
	l.takeQueuedReports(r)
	return r.request
}

func (l *Loop) handleReceipts(r *round, answer *store.Answer) {
	for i, x := range r.reports {
		l.dropLease(x.Attempt)
		x.Attempt.Call.Settled(x, answer.Receipts[i], answer.Now)
	}
}
