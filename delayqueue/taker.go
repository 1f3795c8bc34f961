package delayqueue

import (
	"container/list"
	"context"

	"github.com/tickless/tickless/clock"
)

// How goroutines wait in Take
//
// Takers sleep in a line. The queue has one alarm, set for the deadline of the first
// element. When that element is due, the first taker of the line is woken. It leaves the
// line, locks mu and takes the element. Before it unlocks mu, it wakes the next taker or
// sets the alarm.
//
// One invariant holds whenever mu is not held:
//
//	if takers sleep and the first element can fall due, then a taker is awake,
//	or the alarm is set for that element's deadline or earlier.
//
// wakeOrSetAlarmLocked restores the invariant. It is called after each of these events,
// before mu is unlocked:
//
//   - an element has become the first;
//   - a taker has joined the line;
//   - a taker that was awake has locked mu;
//   - the alarm has gone off.

// A taker is one call of Take that waits.
type taker struct {
	// wakeToken gets one token when the taker is woken. The channel's buffer holds it
	// until the taker receives it.
	wakeToken   chan struct{}
	lineElement *list.Element // in the line; nil while awake. Guarded by the queue's mu.
}

// Take takes the first element. It blocks until that element is due or ctx is done. If
// ctx is done, Take returns ctx.Err(), and the element stays in the queue.
//
// Any number of goroutines may block in Take. The goroutine that has waited longest is
// woken first. But a goroutine that calls Take before the woken one runs may get the
// element.
func (q *Queue[T]) Take(ctx context.Context) (v T, err error) {
	done := ctx.Done()
	if isDone(done) {
		return v, ctx.Err()
	}
	q.lockAndInit()
	v, ok := q.pollLocked(q.now())
	if ok {
		q.mu.Unlock()
		return v, nil
	}
	w := &taker{wakeToken: make(chan struct{}, 1)}
	w.lineElement = q.sleepingTakers.PushBack(w)
	for {
		q.wakeOrSetAlarmLocked()
		q.mu.Unlock()

		// If w is woken between the Unlock and the select, its token waits in the
		// channel.
		select {
		case <-w.wakeToken:
		case <-done:
		}

		q.mu.Lock()
		// If w was woken, other calls of wakeOrSetAlarmLocked have done nothing since. So
		// w must call it, even if its context is done.
		wasWoken := w.lineElement == nil
		if wasWoken {
			q.hasAwakeTaker = false
		}
		// Do not call ctx.Err here: it may be user code, and mu is held.
		if isDone(done) {
			if !wasWoken {
				q.sleepingTakers.Remove(w.lineElement)
			}
			q.wakeOrSetAlarmLocked()
			q.mu.Unlock()
			return v, ctx.Err()
		}
		if v, ok := q.pollLocked(q.now()); ok {
			q.wakeOrSetAlarmLocked() // for the next taker
			q.mu.Unlock()
			return v, nil
		}
		// Another taker took the element before w locked mu. Put w back at the front of
		// the line.
		w.lineElement = q.sleepingTakers.PushFront(w)
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

// wakeOrSetAlarmLocked wakes the first taker of the line if the first element is due.
// Otherwise it sets the alarm for that element. If no taker sleeps, it stops the alarm.
func (q *Queue[T]) wakeOrSetAlarmLocked() {
	if q.hasAwakeTaker {
		return // that taker will call wakeOrSetAlarmLocked
	}
	if q.sleepingTakers.Len() == 0 {
		if q.alarmAt != never {
			// No taker needs the alarm. It would only keep the queue alive.
			q.alarm.Stop()
			q.alarmAt = never
		}
		return
	}
	firstKey, ok := q.elements.first()
	if !ok {
		return // an alarm that is still set goes off once without effect
	}
	now := q.now()
	if isDue(firstKey.dueAt, now) {
		w := q.sleepingTakers.Remove(q.sleepingTakers.Front()).(*taker)
		w.lineElement = nil
		q.hasAwakeTaker = true
		w.wakeToken <- struct{}{}
		return
	}
	if firstKey.dueAt >= q.alarmAt {
		// The alarm goes off in time. If an earlier element was removed, the alarm goes
		// off too early, once, and is then set again.
		return
	}
	if q.alarm == nil {
		q.alarm = q.clock.NewAlarm(q.onAlarm)
	}
	q.alarmAt = firstKey.dueAt
	clock.ResetAt(q.alarm, q.timeOf(now), q.timeOf(firstKey.dueAt))
}

// onAlarm is the alarm's function.
//
// If the alarm is set again while onAlarm waits for mu, onAlarm wrongly sets alarmAt to
// never. That does no harm: the alarm is set once more, or goes off without effect.
func (q *Queue[T]) onAlarm() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarmAt = never
	q.wakeOrSetAlarmLocked()
}
