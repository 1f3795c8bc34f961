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
	// Kept is set while Concurrency holds back a due task. Meanwhile, a new task of the
	// handler wakes no worker. The workers are woken when a running task ends.
	Kept bool
}

// room returns how many tasks may be claimed now. If only the Rate prevents a claim, at
// is when the next task may be claimed.
func (l *Limit) room(now store.Time) (n int64, at store.Time) {
	n, at = math.MaxInt32, Never
	if l.Concurrency > 0 {
		n = max(0, int64(l.Concurrency)-l.Running)
	}
	if every, burst := l.Pace(); n > 0 && every > 0 {
		emptyAt := now + every*store.Time(burst)
		n = min(n, int64((emptyAt-l.fullAt(now))/every))
		at = l.fullAt(now) + every - every*store.Time(burst)
	}
	return n, at
}

// fullAt returns Full, moved into the possible range: the clock or the Rate may have
// changed.
func (l *Limit) fullAt(now store.Time) store.Time {
	every, burst := l.Pace()
	return min(max(l.Full, now), now+every*store.Time(burst))
}

// limit returns a handler's limit, or nil.
func (m *machine) limit(handler string) *Limit {
	if m.numbers.Limits == 0 {
		return nil
	}
	return m.index.Limits()[handler]
}

// takePermit counts a claimed task.
func (m *machine) takePermit(t *Task) {
	if l := m.limit(t.Handler); l != nil {
		every, _ := l.Pace()
		l.Running++
		l.Full = l.fullAt(m.now) + every
	}
}

// returnPermit stops counting a task whose lease ends.
func (m *machine) returnPermit(t *Task) {
	if l := m.limit(t.Handler); l != nil {
		if l.Kept && l.Running == int64(l.Concurrency) {
			m.freedLimits = append(m.freedLimits, l)
		}
		l.Running--
	}
}

// wakeForPermits wakes other workers if a task waits for a permit that this round has
// returned and not taken again.
func (m *machine) wakeForPermits() {
	for _, l := range m.freedLimits {
		if l.Kept && l.Running < int64(l.Concurrency) {
			l.Kept = false
			m.numbers.Wakes++
		}
	}
}

// limitClaim returns the claim with its Rooms reduced to what the limits allow. A Room
// whose Most equals the claim's Max allows any number. A limit may equal Max by chance,
// so limitClaim replaces Max by -1.
func (m *machine) limitClaim(c *store.Claim) *store.Claim {
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
		if l := m.limit(h); l != nil {
			n, _ := l.room(m.now)
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

// markHeldBack marks the limits that hold back due tasks from the claim. It returns
// when the worker should claim again for these handlers, or Never.
func (m *machine) markHeldBack(c *store.Claim, a *store.Answer) store.Time {
	next := Never
	if m.numbers.Limits == 0 || m.numbers.Paused {
		return next
	}
	for i, h := range c.Handlers {
		l := m.limit(h)
		if l == nil || c.Rooms != nil && c.Rooms[i].Most == 0 && c.Max > 0 {
			continue
		}
		n, at := l.room(m.now)
		if n > 0 {
			continue
		}
		due, first := m.index.Due(&store.Claim{Handlers: []string{h}, Schedules: c.Schedules}, m.now, 1)
		switch {
		case len(due) == 0: // another worker may have a schedule that this one lacks
			next = min(next, first)
		case at == Never:
			a.Limited, l.Kept = true, true
		default:
			next = min(next, at)
		}
	}
	return next
}

// Recount corrects each limit's number of running tasks, for a store whose tasks
// another program can change. It reports whether a number was wrong.
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
	switch none := limit == (store.Limit{}); {
	case none && l == nil:
		return store.Absent
	case none:
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
