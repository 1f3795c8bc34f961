package durable

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A leaseList has the running attempts of a loop, ordered by when their leases were
// last extended.
type leaseList struct{ head, tail *attempt }

func (s *leaseList) oldest() *attempt { return s.head }

func (s *leaseList) contains(a *attempt) bool { return a.prev != nil || s.head == a }

func (s *leaseList) addLast(a *attempt, extendedAt time.Time) {
	a.extendedAt = extendedAt
	a.prev, a.next = s.tail, nil
	if s.tail != nil {
		s.tail.next = a
	} else {
		s.head = a
	}
	s.tail = a
}

// remove removes an attempt if it is in the list.
func (s *leaseList) remove(a *attempt) {
	if !s.contains(a) {
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

// leasesToExtend returns the attempts whose leases must be extended. It gives up the
// leases of handlers that hang.
func (l *shardLoop) leasesToExtend(now time.Time) []*attempt {
	attempts := l.takeUrgentAttempts()
	for a := l.leases.oldest(); a != nil && now.Sub(a.extendedAt) >= l.w.config.lease/3 && len(attempts) < store.MaxBatch; {
		nextAttempt := a.next
		if !a.giveUpAt.IsZero() && now.After(a.giveUpAt) {
			// The handler has not returned long after its timeout. Another worker gets
			// the task when the lease has expired.
			l.leases.remove(a)
			l.dropLease(a)
			a.place.Crash()
			l.w.client.log.Warn("durable: a handler does not return; its lease is given up",
				"handler", a.task.Handler, "key", printableKey(a.task.Key))
		} else {
			attempts = append(attempts, a)
		}
		a = nextAttempt
	}
	return attempts
}

// dropLease records that the Worker no longer has the attempt's lease.
func (l *shardLoop) dropLease(a *attempt) {
	if a.mayHaveLease {
		a.mayHaveLease = false
		l.leaseCount--
	}
}

// startAttempt starts an attempt. It returns false if the attempt has already ended and
// needs no place. now is the store's time. sentAt is when the claim was sent.
func (l *shardLoop) startAttempt(a *attempt, now store.Time, sentAt time.Time) bool {
	w := l.w
	l.leases.addLast(a, sentAt)
	a.mayHaveLease = true
	l.leaseCount++
	a.makeContext()
	var earlyReport *report
	if !a.mayCallSchedule() {
		earlyReport = a.prepareCall(now)
	}
	leaseTimerDelay := l.leaseTimerDelay(sentAt)
	switch {
	case w.isStopping.Load():
		earlyReport = a.handBackReport(reasonShutdown)
	case leaseTimerDelay <= 0:
		earlyReport = a.handBackReport(reasonLeaseEnds)
	}
	if earlyReport != nil {
		a.cancel(nil)
		l.queueReport(earlyReport)
		return false
	}
	a.leaseTimer, _ = w.timers.Start(leaseTimerDelay, func() { a.cancel(ErrLeaseLost) })
	if a.isSuspect {
		a.place.Admit(a.delivery.Crashes+1 >= w.config.maxCrashes)
	}
	a.giveUpAt = w.now().Add(a.timeout() + w.config.lease)
	go a.run()
	return true
}
