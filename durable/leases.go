package durable

import (
	"math/rand/v2"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A leaseList has the running attempts of a loop, ordered by when their leases were
// last extended.
type leases struct{ head, tail *attempt }

func (s *leases) first() *attempt { return s.head }

func (s *leases) has(a *attempt) bool { return a.prev != nil || s.head == a }

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

// remove removes an attempt if it is in the list.
func (s *leases) remove(a *attempt) {
	if !s.has(a) {
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

// renewals returns the attempts whose leases must be extended. It gives up the leases
// of handlers that hang.
func (l *loop) renewals(now time.Time) []*attempt {
	out := l.urgently()
	for a := l.held.first(); a != nil && now.Sub(a.renewed) >= l.w.config.lease/3 && len(out) < store.MaxBatch; {
		next := a.next
		if !a.hangs.IsZero() && now.After(a.hangs) {
			// The handler has not returned long after its timeout. Another worker gets
			// the task when the lease has expired.
			l.held.remove(a)
			l.settled(a)
			l.places.hang(a)
			l.w.client.log.Error("durable: a handler does not return; its lease is given up",
				"handler", a.task.Handler, "key", printable(a.task.Key))
		} else {
			out = append(out, a)
		}
		a = next
	}
	return out
}

// dropLease records that the Worker no longer has the attempt's lease.
func (l *loop) settled(a *attempt) {
	if a.open {
		a.open = false
		l.open--
	}
}

// startAttempt starts an attempt. now is the store's time; sent is when the claim was
// sent. It returns false if the attempt ends without a call of the handler, and so
// needs no place.
func (l *loop) start(a *attempt, now store.Time, sent time.Time) bool {
	w := l.w
	l.held.add(a, sent)
	a.open = true
	l.open++
	a.begin()
	var early *report
	if !a.asks() {
		early = a.prepare(now)
	}
	remaining := l.untilLeaseTimer(sent)
	switch {
	case w.stopping.Load() || remaining <= 0:
		early = a.handBack()
	case early == nil && !l.places.admit(a):
		early = a.handBack()
		early.next = delay(rand.N(time.Second))
	}
	if early != nil {
		a.cancel(nil)
		l.report(early)
		return false
	}
	a.leaseTimer, _ = w.timers.Start(remaining, func() { a.cancel(ErrLeaseLost) })
	if a.isLast() {
		l.waitsAlone = a
	} else {
		l.begin(a)
	}
	return true
}

// startHandler starts the handler's goroutine.
func (l *loop) begin(a *attempt) {
	a.hangs = l.w.now().Add(a.timeout() + l.w.config.lease)
	go a.run()
}
