package delayqueue

import (
	"container/list"
	"context"

	"github.com/tickless/tickless/clock"
)

// How goroutines wait in Take
//
// Takers that sleep wait in a line. The first of them is the leader. The queue has one
// alarm, which goes off for the leader. When the first element is due, the leader is
// woken, leaves the line, locks mu and takes the element. Before it unlocks mu, it wakes
// the next leader or sets the alarm. All other takers sleep.
//
// One invariant holds whenever mu is not held:
//
//	if takers sleep and the first element can fall due, then a taker is awake,
//	or the alarm is set for a moment not after that element's deadline.
//
// settleLocked establishes the invariant. Code that may break it calls settleLocked
// before it unlocks mu: after an element has become the first, after a taker has joined
// the line, after a taker that was awake has locked mu, and after the alarm has gone off.
// Taking elements cannot break it.
//
// A wake-up leaves the element in the queue. The woken taker takes it under mu, unless
// its context is done.

// A taker is one call of Take that waits.
type taker struct {
	// wake gets one token when the taker is woken. The channel has room for the token:
	// see the race in Take.
	wake chan struct{}
	elem *list.Element // in the line; nil while awake. Guarded by the queue's mu.
}

// Take takes the first element. It blocks until that element is due or ctx is done. If
// ctx is done, Take returns ctx.Err() even if an element is due, and the element stays in
// the queue for others. (The cause, if there is one, is in [context.Cause].)
//
// Any number of goroutines may block at once, at the cost of one alarm and of one wake-up
// for each element. The goroutine that has waited longest is woken first, but a goroutine
// that calls Take before it runs may get the element first.
func (q *Queue[T]) Take(ctx context.Context) (v T, err error) {
	done := ctx.Done()
	if isDone(done) {
		return v, ctx.Err()
	}
	q.lock()
	v, ok := q.pollLocked(q.now())
	if ok {
		q.mu.Unlock()
		return v, nil
	}
	w := &taker{wake: make(chan struct{}, 1)}
	w.elem = q.waiting.PushBack(w)
	for {
		q.settleLocked()
		q.mu.Unlock()

		// If the alarm goes off, or an earlier element is offered, between the Unlock and
		// the select below, then w is already in the line and is woken: its token waits
		// in the channel.
		select {
		case <-w.wake:
		case <-done:
		}

		q.mu.Lock()
		// If w was woken and its context is done too, w must still settle: since the
		// wake-up, settleLocked has relied on w.
		woken := w.elem == nil
		if woken {
			q.awake = false
		}
		// Read the channel rather than call ctx.Err, which may be user code.
		if isDone(done) {
			if !woken {
				q.waiting.Remove(w.elem)
			}
			q.settleLocked()
			q.mu.Unlock()
			return v, ctx.Err()
		}
		if v, ok := q.pollLocked(q.now()); ok {
			q.settleLocked() // for the next leader
			q.mu.Unlock()
			return v, nil
		}
		// Another taker took the element before w locked mu. w goes back to the front.
		w.elem = q.waiting.PushFront(w)
	}
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// settleLocked makes sure that a taker comes for the first element, if takers sleep. It
// wakes the leader if the element is due, and otherwise sets the alarm. It costs almost
// nothing if no taker sleeps.
func (q *Queue[T]) settleLocked() {
	if q.awake {
		return // that taker settles when it has locked mu
	}
	if q.waiting.Len() == 0 {
		if q.alarmAt != never {
			// An alarm would only keep the queue alive.
			q.alarm.Stop()
			q.alarmAt = never
		}
		return
	}
	head, ok := q.order.head()
	if !ok {
		return // an alarm that is still set goes off once without effect
	}
	now := q.now()
	if isDue(head.due, now) {
		w := q.waiting.Remove(q.waiting.Front()).(*taker)
		w.elem = nil
		q.awake = true
		w.wake <- struct{}{}
		return
	}
	if head.due >= q.alarmAt {
		// The alarm is set for this element, or for an earlier one that is gone. In the
		// second case it goes off once too early and is then set again. That is cheaper
		// than to set it with each removal. (An element that never falls due needs no
		// alarm.)
		return
	}
	if q.alarm == nil {
		q.alarm = q.clock.NewAlarm(q.ring)
	}
	q.alarmAt = head.due
	clock.ResetAt(q.alarm, q.timeOf(now), q.timeOf(head.due))
}

// ring is the alarm's function.
//
// If the alarm is reset or stopped while ring waits for mu, then ring sets alarmAt to never
// although the alarm may be set. That does no harm: settleLocked sets the alarm again, or
// the alarm goes off once without effect.
func (q *Queue[T]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarmAt = never
	q.settleLocked()
}
