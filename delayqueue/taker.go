package delayqueue

import (
	"container/list"
	"context"

	"github.com/tickless/tickless/clock"
)

// How goroutines wait in Take
//
// The pattern is leader and followers. One taker at a time is the leader, and
// only for the leader is anything set in motion: while the head is not due, it
// is the first in line, and the queue's one alarm is set in its name; when the
// head is due, it is woken, leaves the line, and is on its way to mu. Whoever
// was the leader, and holds mu, settles who is next before letting go of mu.
// Followers just sleep.
//
// All of it rests on one promise, kept whenever mu is free:
//
//	if takers sleep and the head can fall due, then a taker is awake,
//	or the alarm is set for a moment not after the head's.
//
// settleLocked establishes the promise. Those who may break it call it before
// they release mu: who puts an earlier element at the head, who joins the
// line, who was awake and is no longer, and the alarm when it is spent. Those
// who take elements away cannot break it.
//
// A wake-up leaves the element in the queue: the taker takes it under mu, if its context
// is not done.

// A taker is one call of Take that waits.
type taker struct {
	// wake gets one token from whoever makes the taker awake. It has room for
	// it: see the race in Take.
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
		// If w was woken and its context is done as well, whichever of the two
		// got it here, then others rely on it to settle, and nobody else will:
		// the wake-up is passed on like one that was made use of.
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
		// If somebody else took the element while w was on its way, then w
		// has lost nothing but its sleep: it keeps its place.
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

// settleLocked sees to it that somebody comes for the head, if takers sleep:
// it wakes the first of them if the head is due, and else sets the alarm. It
// costs next to nothing if none sleep.
func (q *Queue[T]) settleLocked() {
	if q.awake {
		return // that taker settles when it gets mu
	}
	if q.waiting.Len() == 0 {
		if q.armed != never {
			// Nothing shall ring for nobody, nor keep the queue alive.
			q.alarm.Stop()
			q.armed = never
		}
		return
	}
	head, ok := q.order.head()
	if !ok {
		return // an alarm that is still set rings once for nothing
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
// If the alarm is set to another moment, or stopped, while a ring of its is
// waiting for mu, then that ring takes the alarm for spent although it is not.
// No harm: settleLocked sets it again, or at worst it rings once for nobody.
func (q *Queue[T]) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = never
	q.settleLocked()
}
