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

// applyLimits returns the claim without handlers at their limit, and with smaller Rooms
// for other limited handlers. The claim's Max becomes -1: a [Picker] would ignore a Most that
// equals Max.
func (m *machine) applyLimits(c *store.Claim) *store.Claim {
	if m.numbers.Limits == 0 {
		return c
	}
	x := *c
	x.Max, x.Handlers, x.Rooms = -1, nil, make([]store.Room, 0, len(c.Handlers))
	for i, h := range c.Handlers {
		r := store.Room{Most: c.Max, First: c.Max}
		if c.Rooms != nil {
			r = c.Rooms[i]
		}
		if r.Most == c.Max {
			r.Most = math.MaxInt
		}
		if l := m.limitOf(h); l != nil {
			n, _ := l.available(m.now)
			if n == 0 {
				continue
			}
			r.Most = min(r.Most, int(n))
			r.First = min(r.First, r.Most)
		}
		x.Handlers, x.Rooms = append(x.Handlers, h), append(x.Rooms, r)
	}
	return &x
}

// markBlockingLimits sets Kept in limits whose Concurrency holds back due tasks from the
// claim. It returns when the worker should claim again for limited handlers, or Never.
func (m *machine) markBlockingLimits(c *store.Claim, a *store.Answer) store.Time {
	nextClaimAt := Never
	if m.numbers.Limits == 0 || m.numbers.Paused {
		return nextClaimAt
	}
	for i, h := range c.Handlers {
		l := m.limitOf(h)
		if l == nil || c.Rooms != nil && c.Rooms[i].Most == 0 && c.Max > 0 {
			continue
		}
		n, at := l.available(m.now)
		if n > 0 {
			continue
		}
		handlerClaim := &store.Claim{Handlers: []string{h}, Schedules: c.Schedules, Suspects: 1}
		due, first := m.index.Due(handlerClaim, NewPicker(handlerClaim, math.MaxInt), m.now, 1)
		switch {
		case len(due) == 0: // no task that this worker can run is held back
			nextClaimAt = min(nextClaimAt, first)
		case at == Never:
			a.Limited, l.Kept = true, true
		default:
			nextClaimAt = min(nextClaimAt, at)
		}
	}
	return nextClaimAt
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
