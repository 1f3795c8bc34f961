package delayqueue

import (
	"container/list"
	"context"

	"github.com/tickless/tickless/clock"
)

// How goroutines wait in Take
//
// Takers that sleep stand in a line. The first of them is the leader, and the queue's one
// alarm rings for it. When the head is due, the leader is woken, leaves the line, and locks
// mu to take the head. Before it unlocks mu it sets the alarm for the next leader, or
// wakes it. All other takers just sleep.
//
// One invariant holds whenever mu is free:
//
//	if takers sleep and the head can fall due, then a taker is awake,
//	or the alarm is set for a moment not after the head's.
//
// settleLocked establishes it. Code that may break it calls settleLocked before it unlocks
// mu: after an element has become the head, after a taker has joined the line, after a
// taker that was awake has locked mu, and after the alarm has rung. Taking elements away
// cannot break it.
//
// A wake-up leaves the element in the queue: the taker takes it under mu, if its context
// is not done.

// A taker is one call of Take that waits.
type taker struct {
	// wake gets one token when the taker is woken. It has room for the token: see the
	// race in Take.
	wake  chan struct{}
	place *list.Element // in the line; nil while awake. Guarded by the queue's mu.
}

// Take takes the first element, and blocks until there is one that is due or
// ctx is done. Then it returns ctx.Err(), as it does when ctx is done from the
// start, even if an element is due; the element stays for others. (The cause,
// if there is one, is in [context.Cause].)
//
// Any number of goroutines may block at once, at the cost of one alarm and of
// one wake-up for each element. Among them the one that has waited longest is
// woken, but one that arrives while it is on its way may be faster.
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
	w.place = q.waiting.PushBack(w)
	for {
		q.settleLocked()
		q.mu.Unlock()

		// If the alarm rings, or an earlier element is offered, between the
		// Unlock and the receive below, then w is in line already and will be
		// found there, and its token waits in the channel.
		select {
		case <-w.wake:
		case <-done:
		}

		q.mu.Lock()
		// If w was woken and its context is done too, w still has to settle: settleLocked
		// has relied on it since it was woken.
		woken := w.place == nil
		if woken {
			q.awake = false
		}
		// The channel is asked rather than ctx.Err, which is not our code.
		if isDone(done) {
			if !woken {
				q.waiting.Remove(w.place)
			}
			q.settleLocked()
			q.mu.Unlock()
			return v, ctx.Err()
		}
		if v, ok := q.pollLocked(q.now()); ok {
			q.settleLocked() // the next leader
			q.mu.Unlock()
			return v, nil
		}
		// Another taker took the element before w locked mu: w is the first in line again.
		w.place = q.waiting.PushFront(w)
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

// settleLocked makes sure that a taker comes for the head, if takers sleep: it wakes the
// first of them if the head is due, and else sets the alarm. It costs next to nothing if
// none sleep.
func (q *Queue[T]) settleLocked() {
	if q.awake {
		return // that taker settles when it gets mu
	}
	if q.waiting.Len() == 0 {
		if q.armed != never {
			// An alarm without a taker would only keep the queue alive.
			q.alarm.Stop()
			q.armed = never
		}
		return
	}
	head, ok := q.order.head()
	if !ok {
		return // an alarm that is still set rings once in vain
	}
	now := q.now()
	if isDue(head.due, now) {
		w := q.waiting.Remove(q.waiting.Front()).(*taker)
		w.place = nil
		q.awake = true
		w.wake <- struct{}{}
		return
	}
	if head.due >= q.armed {
		// Set for this head, or for an earlier one that is gone. In that case
		// it rings once too early, and the ring sets it again: cheaper than to
		// set it with each removal. (A head that never comes has no alarm.)
		return
	}
	if q.alarm == nil {
		q.alarm = q.clock.NewAlarm(q.ring)
	}
	q.armed = head.due
	clock.ResetAt(q.alarm, q.timeOf(now), q.timeOf(head.due))
}

// ring is what the alarm calls.
//
// If the alarm is set to another moment, or stopped, while ring waits for mu, then ring
// sets armed to never although the alarm may be set. That does no harm: settleLocked sets
// it again, or it rings once in vain.
func (q *Queue[T]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = never
	q.settleLocked()
}
