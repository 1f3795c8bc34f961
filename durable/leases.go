package durable

import (
	"math/rand/v2"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// leases are a loop's attempts under way, the one whose lease was prolonged
// longest ago first.
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

// remove removes an attempt, or does nothing if it is not there.
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

// renewals returns attempts whose leases are to be prolonged.
func (l *loop) renewals(now time.Time) []*attempt {
	out := l.urgently()
	for a := l.held.first(); a != nil && now.Sub(a.renewed) >= l.w.config.lease/3 && len(out) < store.MaxBatch; {
		next := a.next
		if !a.hangs.IsZero() && now.After(a.hangs) {
			// It does not return although its time is long up. What it holds goes to
			// another worker as soon as the lease has run out.
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

// settled says that the attempt's lease is not the Worker's any more.
func (l *loop) settled(a *attempt) {
	if a.open {
		a.open = false
		l.open--
	}
}

// start starts an attempt whose lease was given after sent. It returns false for one
// that is over before it has begun, and takes no place.
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
	left := l.untilCut(sent)
	switch {
	case w.stopping.Load() || left <= 0:
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
	a.cut, _ = w.timers.Start(left, func() { a.cancel(ErrLeaseLost) })
	if a.isLast() {
		l.waits = a
	} else {
		l.begin(a)
	}
	return true
}

// begin has the handler run.
func (l *loop) begin(a *attempt) {
	a.hangs = l.w.now().Add(a.timeout() + l.w.config.lease)
	go a.run()
}
