package machine

import (
	"math"

	"github.com/tickless/tickless/durable/store"
)

// A Limit is a handler's limit and its use. Stores may encode it as JSON.
type Limit struct {
	store.Limit
	Running int64
	Full    store.Time // when a whole burst may be claimed at once
	// Kept says that Concurrency has held back a due task. The permit that makes room
	// wakes other workers. Until then no task of the handler needs to wake a worker.
	Kept bool
}

// room returns how many tasks may be claimed. If only the Rate prevents a claim, at is
// when the next task may be claimed.
func (l *Limit) room(now store.Time) (n int64, at store.Time) {
	n, at = math.MaxInt32, Never
	if l.Concurrency > 0 {
		n = max(0, int64(l.Concurrency)-l.Running)
	}
	if every, burst := l.Pace(); n > 0 && every > 0 {
		empty := now + every*store.Time(burst)
		n = min(n, int64((empty-l.full(now))/every))
		at = l.full(now) + every - every*store.Time(burst)
	}
	return n, at
}

// full returns Full, corrected for changes of the clock or of Pace.
func (l *Limit) full(now store.Time) store.Time {
	every, burst := l.Pace()
	return min(max(l.Full, now), now+every*store.Time(burst))
}

// limit returns a handler's limit, or nil.
func (m *machine) limit(handler string) *Limit {
	if m.n.Limits == 0 {
		return nil
	}
	return m.ix.Limits()[handler]
}

// begins takes a permit for a claimed task.
func (m *machine) begins(t *Task) {
	if l := m.limit(t.Handler); l != nil {
		every, _ := l.Pace()
		l.Running++
		l.Full = l.full(m.now) + every
	}
}

// ends returns the permit of a task whose lease ends.
func (m *machine) ends(t *Task) {
	if l := m.limit(t.Handler); l != nil {
		if l.Kept && l.Running == int64(l.Concurrency) {
			m.freed = append(m.freed, l)
		}
		l.Running--
	}
}

// wakeKept wakes other workers for the permits that the round has returned and not taken
// again.
func (m *machine) wakeKept() {
	for _, l := range m.freed {
		if l.Kept && l.Running < int64(l.Concurrency) {
			l.Kept = false
			m.n.Wakes++
		}
	}
}

// within returns the claim with its room reduced to that of the limits. The claim's own
// Max stands for any number in a Room. A limit never does, so the result has a Max that no
// Room has.
func (m *machine) within(c *store.Claim) *store.Claim {
	if m.n.Limits == 0 {
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

// keepBack notes the tasks that only limits hold back from a claim. It returns when the
// first of them may be claimed, if that is known.
func (m *machine) keepBack(c *store.Claim, a *store.Answer) store.Time {
	next := Never
	if m.n.Limits == 0 || m.n.Paused {
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
		due, first := m.ix.Due(&store.Claim{Handlers: []string{h}, Schedules: c.Schedules}, m.now, 1)
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

// Recount counts the running tasks of the handlers that have a limit, for a store whose
// tasks another program can change. It reports whether a count was wrong.
func Recount(ix Index) (wrong bool) {
	n := ix.Numbers()
	if n.Limits == 0 {
		return false
	}
	running := make(map[string]int64)
	for _, t := range ix.Running(Never) {
		running[t.Handler]++
	}
	for h, l := range ix.Limits() {
		if l.Running != running[h] {
			l.Running, l.Kept, wrong = running[h], false, true
		}
	}
	if wrong {
		n.Wakes++
	}
	return wrong
}

// setLimit carries out SetLimit.
func (m *machine) setLimit(handler string, limit store.Limit) store.Outcome {
	limits := m.ix.Limits()
	l, outcome := limits[handler], store.Replaced
	m.n.Wakes++
	switch none := limit == (store.Limit{}); {
	case none && l == nil:
		return store.Absent
	case none:
		delete(limits, handler)
		m.n.Limits--
		return store.Removed
	case l == nil && len(limits) >= store.MaxLimits:
		return store.Kept
	case l == nil:
		l, outcome = new(Limit), store.Created
		limits[handler] = l
		m.n.Limits++
	}
	*l = Limit{Limit: limit, Full: l.Full}
	for _, t := range m.ix.Running(Never) {
		if t.Handler == handler {
			l.Running++
		}
	}
	return outcome
}
