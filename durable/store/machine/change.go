package machine

import (
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A machine is the state of one transaction.
type machine struct {
	ix    Index
	n     *Numbers
	now   store.Time
	freed []*Limit // limits that had no room before
}

// leap is the difference between the wall clock and the steady clock that counts as a
// change of the wall clock.
const leap = time.Second

// begin compares the clocks with those of the previous transaction.
func begin(ix Index, at Moment) *machine {
	m := &machine{ix: ix, n: ix.Numbers(), now: at.Wall}
	step := at.Wall.Sub(m.n.Wall)
	if at.Boot == m.n.Boot {
		step -= at.Steady - m.n.Steady
	} else {
		step = min(step, 0) // whether time has passed or the clock was set forward is not known
	}
	if m.n.Wall != 0 && (step > leap || step < -leap) {
		for _, t := range ix.Running(Never) {
			m.put(t, store.Running, m.now.Add(t.Lease))
		}
	}
	m.n.Moment = at
	return m
}

// memory is how long a sender is remembered.
const memory = 24 * time.Hour

// admit returns a new Sender for a command, the Sender of a command that was already
// carried out, or an error for a command that must not be carried out.
func (m *machine) admit(s *store.Stamp) (x *Sender, again bool, err error) {
	last := m.ix.Sender(s.Sender)
	switch {
	case last != nil && s.Number < last.Number:
		return nil, false, store.ErrStale
	case last != nil && s.Number == last.Number:
		m.remember(s, last)
		return last, true, nil
	case s.Until != 0 && m.now > s.Until:
		return nil, false, store.ErrLate
	}
	x = &Sender{Number: s.Number}
	if last != nil {
		x.Claim = last.Claim
		return x, false, nil
	}
	// When a new sender comes, forget some that have been silent for long, but not the
	// workers of a paused store: they may have had nothing to claim.
	for _, name := range m.ix.Gone(m.now.Add(-memory), 8) {
		if !m.n.Paused || m.ix.Sender(name).Claim == nil {
			m.ix.Remember(name, nil)
		}
	}
	return x, false, nil
}

func (m *machine) remember(s *store.Stamp, x *Sender) {
	x.Seen = m.now
	m.ix.Remember(s.Sender, x)
}

// Change carries out a command that has passed its Check. It keeps the items.
func Change(ix Index, at Moment, s *store.Stamp, c *store.Command) ([]store.Outcome, error) {
	m := begin(ix, at)
	x, again, err := m.admit(s)
	if err != nil {
		return nil, err
	}
	if again {
		return slices.Clone(x.Outcomes), nil
	}
	x.Outcomes = m.changeAll(c)
	switch c.Op {
	case store.Pause:
		m.n.Paused = true
	case store.Resume:
		m.n.Paused = false
		m.n.Wakes++
	}
	m.remember(s, x)
	return slices.Clone(x.Outcomes), nil
}

// Schedule carries out a Schedule command as the only command of a transaction. It
// needs no stamp. It keeps the items.
func Schedule(ix Index, at Moment, c *store.Command) []store.Outcome {
	return begin(ix, at).changeAll(c)
}

func (m *machine) changeAll(c *store.Command) (out []store.Outcome) {
	for i := range c.Items {
		out = append(out, m.change(c, &c.Items[i]))
	}
	return out
}

func (m *machine) change(c *store.Command, x *store.Item) store.Outcome {
	t := m.ix.Find(x.ID)
	at := x.When.From(m.now)
	switch c.Op {
	case store.Schedule:
		return m.schedule(t, x, at, c.Keep)
	case store.Reschedule:
		return m.reschedule(t, x, at)
	case store.Cancel:
		return m.cancel(t)
	case store.Requeue:
		return m.requeue(t, x, at)
	case store.Import:
		return m.take(t, x.Entry)
	case store.SetLimit:
		return m.setLimit(x.ID, *x.Limit)
	}
	// Purge
	if t == nil || t.State < store.Dead {
		return store.Absent
	}
	m.end(t)
	return store.Removed
}

func (m *machine) schedule(t *Task, x *store.Item, at store.Time, keep store.Keep) store.Outcome {
	keeps := func(there store.Time) bool {
		return keep == store.KeepEarlier && at >= there || keep == store.KeepLater && at <= there
	}
	paused := func(there store.Time) {
		if there == store.Farthest && x.Task.Repeats() {
			at = there
		}
	}
	switch {
	case m.isUnique(&x.Task):
		return store.Kept
	case t == nil:
		m.fresh(m.add(x.Task), at)
		return store.Created
	case keep == store.KeepSame && t.isNext(&x.Task):
		return store.Kept
	case keep == store.KeepAny, t.State == store.Pending && keeps(t.At), t.Following && keeps(t.Next):
		return store.Kept
	case t.State == store.Running:
		if t.Following {
			paused(t.Next)
		}
		t.NextTask, t.Following, t.Next = &x.Task, true, at
		m.ix.Changed(t)
		return store.Following
	case t.State == store.Pending:
		paused(t.At)
	}
	t.Task = x.Task
	m.fresh(t, at)
	return store.Replaced
}

// isNext reports whether x equals the entry's task or, if the entry is Following, the
// task that follows.
func (t *Task) isNext(x *store.Task) bool {
	switch {
	case t.State >= store.Dead || t.Stopping && !t.Following:
		return false
	case t.NextTask != nil:
		return t.NextTask.Same(x)
	}
	return t.Same(x)
}

func (m *machine) reschedule(t *Task, x *store.Item, at store.Time) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead:
		return store.Absent
	case t.State == store.Running:
		next := t.Task
		if t.NextTask != nil {
			next = *t.NextTask
		}
		if next.Renew(x.Generation) {
			t.NextTask = &next
		}
		t.Following, t.Next = true, at
		m.ix.Changed(t)
		return store.Following
	}
	switch {
	case t.At == store.Farthest && t.Repeats():
		t.Renew(x.Generation)
		m.fresh(t, at)
		return store.Moved
	case t.Attempts == 0 && t.Crashes == 0:
		t.Due = at
		t.Renew(x.Generation)
	}
	m.put(t, store.Pending, at)
	return store.Moved
}

func (m *machine) cancel(t *Task) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead:
		return store.Absent
	case t.State == store.Running:
		if !t.Stopping {
			m.n.Cancelled++
		}
		t.Stopping, t.Following, t.Next, t.NextTask = true, false, 0, nil
		m.ix.Changed(t)
		return store.Stopping
	}
	m.n.Cancelled++
	m.end(t)
	return store.Removed
}

func (m *machine) requeue(t *Task, x *store.Item, at store.Time) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	if key := store.KeyOf(t.ID); t.ID == store.DeadID(key) {
		m.end(t)
		single := t.Task
		single.Schedule, single.ID = "", store.SingleID(key, t.Due)
		for free := m.now; m.ix.Find(single.ID) != nil; free++ {
			single.ID = store.SingleID(key, free)
		}
		t = m.add(single)
	}
	t.Renew(x.Generation)
	m.fresh(t, at)
	return store.Moved
}

// take imports an entry of another store.
func (m *machine) take(t *Task, e *store.Entry) store.Outcome {
	if t != nil {
		return store.Kept
	}
	t = m.add(e.Task)
	t.Due, t.Attempts, t.Crashes, t.Runs, t.Failures = e.Due, e.Attempts, e.Crashes, e.Runs, e.Failures
	switch {
	case e.State >= store.Dead:
		m.put(t, e.State, e.At)
	case e.Following:
		if e.NextTask != nil {
			t.Task = *e.NextTask
		}
		m.fresh(t, e.Next)
	case e.State == store.Running:
		m.put(t, store.Pending, m.now)
	default:
		m.put(t, store.Pending, e.At)
	}
	return store.Created
}
