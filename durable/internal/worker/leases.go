package worker

import (
	"container/list"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// An Attempt is a claimed task, from its claim until the store has accepted the report on it.
// It belongs to a Loop, except reportQueued.
type Attempt struct {
	// Set by Claimed.

	Call          Call
	Lease         store.Lease
	Due           store.Time // when the run is due, in the store
	Handler       int        // the index in Config.Handlers, or -1
	Place         places.Place
	Timeout       time.Duration
	Cancel        context.CancelCauseFunc // of the handler's context
	IsSuspect     bool                    // see package places
	IsLastSuspect bool
	Keep          bool // store.Report.Keep

	loop         *Loop
	leaseTimer   timer.Handle  // cancels the context shortly before the lease ends
	extendedAt   time.Time     // when the lease was last extended; zero: extend it now
	giveUpAt     time.Time     // when to give the lease up if the handler has not returned
	mayHaveLease bool          // the Worker may still have the lease
	inLeases     *list.Element // in Loop.leases, or nil
	reportQueued bool          // a report was queued; guarded by Loop.mu
}

// addLease adds an attempt to the list of those whose leases are extended, which is ordered by
// when that was last done.
func (l *Loop) addLease(a *Attempt, extendedAt time.Time) {
	a.extendedAt, a.inLeases = extendedAt, l.leases.PushBack(a)
}

// removeLease removes an attempt from the list, if it is there.
func (l *Loop) removeLease(a *Attempt) {
	if a.inLeases != nil {
		l.leases.Remove(a.inLeases)
		a.inLeases = nil
	}
}

// running iterates over the list. The loop's body may remove the attempt.
func (l *Loop) running() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for e := l.leases.Front(); e != nil; {
			next := e.Next()
			if !yield(e.Value.(*Attempt)) {
				return
			}
			e = next
		}
	}
}

// nextExtension returns when the next lease must be extended, or never.
func (l *Loop) nextExtension() time.Time {
	if e := l.leases.Front(); e != nil {
		return e.Value.(*Attempt).extendedAt.Add(l.run.Lease / 3)
	}
	return never
}

// leasesToExtend returns the attempts whose leases must be extended, at most store.MaxBatch. It
// gives up the leases of handlers that hang.
func (l *Loop) leasesToExtend(now time.Time) (attempts []*Attempt) {
	l.hastenExtensions()
	for a := range l.running() {
		switch {
		case now.Before(a.extendedAt.Add(l.run.Lease/3)) || len(attempts) == store.MaxBatch:
			return attempts
		case !a.giveUpAt.IsZero() && now.After(a.giveUpAt):
			// The handler has not returned long after its timeout. Another worker gets
			// the task when the lease has expired.
			l.removeLease(a)
			l.dropLease(a)
			a.Place.Crash()
			a.Call.GivenUp()
		default:
			attempts = append(attempts, a)
		}
	}
	return attempts
}

// dropLease records that the Worker no longer has the attempt's lease.
func (l *Loop) dropLease(a *Attempt) {
	if a.mayHaveLease {
		a.mayHaveLease = false
		l.leaseCount--
	}
}

// startAttempt starts an attempt. It returns false if the attempt has already ended, with
// earlyReport or because it is too late, and needs no place. sentAt is when the claim was sent.
func (l *Loop) startAttempt(a *Attempt, earlyReport *Report, sentAt time.Time) bool {
	a.loop = l
	l.addLease(a, sentAt)
	a.mayHaveLease = true
	l.leaseCount++
	leaseTimerDelay := l.leaseTimerDelay(sentAt)
	switch {
	case l.run.stopping.Load():
		earlyReport = a.handBack(ReasonShutdown)
	case leaseTimerDelay <= 0:
		earlyReport = a.handBack(ReasonLeaseEnds)
	}
	if earlyReport != nil {
		a.Cancel(nil)
		l.queueReport(earlyReport)
		return false
	}
	a.leaseTimer, _ = l.run.Timers.Start(leaseTimerDelay, func() { a.Cancel(ErrLeaseLost) })
	if a.IsSuspect {
		a.Place.Admit(a.IsLastSuspect)
	}
	a.giveUpAt = l.run.Now().Add(a.Timeout + l.run.Lease)
	go a.Call.Run()
	return true
}

// leaseTimerDelay returns the time until a lease has only a tenth left. The lease began
// at sentAt.
func (l *Loop) leaseTimerDelay(sentAt time.Time) time.Duration {
	return sentAt.Add(l.run.Lease - l.run.Lease/10).Sub(l.run.Now())
}

// handleExtensions records which leases were extended. They count from when the round
// was first sent: the store may have carried out the round then.
func (l *Loop) handleExtensions(r *round, answer *store.Answer) {
	for i, a := range r.extendedAttempts {
		if a.inLeases == nil {
			continue // the attempt ended before the answer came
		}
		l.removeLease(a)
		switch answer.Extensions[i] {
		case store.Lost:
			l.dropLease(a)
			a.Cancel(ErrLeaseLost)
			a.Place.Crash()
			continue
		case store.HeldStopping:
			a.Cancel(ErrCancelled)
		}
		if leaseTimerDelay := l.leaseTimerDelay(r.firstSentAt); leaseTimerDelay > 0 {
			a.leaseTimer.Move(leaseTimerDelay)
		}
		l.addLease(a, r.firstSentAt)
	}
}

// extendLeaseNow makes the loop extend the lease of the task id immediately, if the
// loop has that lease.
func (l *Loop) extendLeaseNow(id string) {
	l.mu.Lock()
	l.urgentIDs = append(l.urgentIDs, id)
	l.mu.Unlock()
	l.wake()
}

// hastenExtensions moves the attempts at the tasks in l.urgentIDs to the front of the list, as if
// their leases were never extended. They stay there until the store has answered their extension.
func (l *Loop) hastenExtensions() {
	l.mu.Lock()
	ids := l.urgentIDs
	l.urgentIDs = nil
	l.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	for a := range l.running() {
		if slices.Contains(ids, a.Lease.ID) {
			a.extendedAt = time.Time{}
			l.leases.MoveToFront(a.inLeases)
		}
	}
}
