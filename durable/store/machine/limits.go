package machine

import (
	"math"

	"github.com/tickless/tickless/durable/store"
)

// A Limit is a handler's limit and the state to enforce it. Stores may encode it as
// JSON.
type Limit struct {
	store.Limit
	Running int64      // Running tasks of the handler
	Full    store.Time // the time from which a full burst may be claimed at once
	// Kept is true while Concurrency holds back a due task. New tasks of the handler
	// then wake no worker. The end of a running task wakes the workers.
	Kept bool
}

// available returns how many tasks may be claimed now. If only the Rate forbids a claim,
// nextAt is when the next task may be claimed.
func (l *Limit) available(now store.Time) (n int64, nextAt store.Time) {
	n, nextAt = math.MaxInt32, Never
	if l.Concurrency > 0 {
		n = max(0, int64(l.Concurrency)-l.Running)
	}
	if interval, burst := l.Pace(); n > 0 && interval > 0 {
		latestFullAt := now + interval*store.Time(burst)
		n = min(n, int64((latestFullAt-l.fullAt(now))/interval))
		nextAt = l.fullAt(now) + interval - interval*store.Time(burst)
	}
	return n, nextAt
}

// fullAt returns Full, limited to a possible time: the clock or the Rate may have changed.
func (l *Limit) fullAt(now store.Time) store.Time {
	interval, burst := l.Pace()
	return min(max(l.Full, now), now+interval*store.Time(burst))
}

// limitOf returns a handler's limit, or nil.
func (m *machine) limitOf(handler string) *Limit {
	if m.numbers.Limits == 0 {
		return nil
	}
	return m.index.Limits()[handler]
}

// takePermit counts a claimed task for its handler's limit.
func (m *machine) takePermit(t *Task) {
	if l := m.limitOf(t.Handler); l != nil {
		interval, _ := l.Pace()
		l.Running++
		l.Full = l.fullAt(m.now) + interval
	}
}

// returnPermit stops counting a task whose attempt ends.
func (m *machine) returnPermit(t *Task) {
	if l := m.limitOf(t.Handler); l != nil {
		if l.Kept && l.Running == int64(l.Concurrency) {
			m.freedLimits = append(m.freedLimits, l)
		}
		l.Running--
	}
}

// wakeForFreedLimits wakes other workers for tasks that a limit has held back, if attempts
// that ended in this round leave room for them.
func (m *machine) wakeForFreedLimits() {
	for _, l := range m.freedLimits {
		if l.Kept && l.Running < int64(l.Concurrency) {
			l.Kept = false
			m.numbers.Wakes++
		}
	}
}

// Recount corrects each limit's number of running tasks, in case another program has
// changed the stored tasks. It reports whether a number was wrong.
func Recount(index Index) (corrected bool) {
	n := index.Numbers()
	if n.Limits == 0 {
		return false
	}
	runningByHandler := make(map[string]int64)
	for _, t := range index.Running(Never) {
		runningByHandler[t.Handler]++
	}
	for h, l := range index.Limits() {
		if l.Running != runningByHandler[h] {
			l.Running, l.Kept, corrected = runningByHandler[h], false, true
		}
	}
	if corrected {
		n.Wakes++
	}
	return corrected
}

// setLimit carries out SetLimit.
func (m *machine) setLimit(handler string, limit store.Limit) store.Outcome {
	limits := m.index.Limits()
	l, outcome := limits[handler], store.Replaced
	m.numbers.Wakes++
	switch isRemoval := limit == (store.Limit{}); {
	case isRemoval && l == nil:
		return store.Absent
	case isRemoval:
		delete(limits, handler)
		m.numbers.Limits--
		return store.Removed
	case l == nil && len(limits) >= store.MaxLimits:
		return store.Kept
	case l == nil:
		l, outcome = new(Limit), store.Created
		limits[handler] = l
		m.numbers.Limits++
	}
	*l = Limit{Limit: limit, Full: l.Full}
	for _, t := range m.index.Running(Never) {
		if t.Handler == handler {
			l.Running++
		}
	}
	return outcome
}
