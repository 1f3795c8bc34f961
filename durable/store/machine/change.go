package machine

import (
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A machine is the state of one transaction.
type machine struct {
	index       Index
	numbers     *Numbers
	now         store.Time
	freedLimits []*Limit // limits with a permit that this round has returned
}

// minClockStep is how far the wall clock must move, compared with the steady clock, to
// count as set.
const minClockStep = time.Second

// begin starts a transaction. If the wall clock was set since the last one, all leases
// start again.
func begin(index Index, at Moment) *machine {
	m := &machine{index: index, numbers: index.Numbers(), now: at.Wall}
	clockStep := at.Wall.Sub(m.numbers.Wall)
	if at.Boot == m.numbers.Boot {
		clockStep -= at.Steady - m.numbers.Steady
	} else {
		clockStep = min(clockStep, 0) // after a restart of the steady clock, it is unknown how much time has passed
	}
	if m.numbers.Wall != 0 && (clockStep > minClockStep || clockStep < -minClockStep) {
		for _, t := range index.Running(Never) {
			m.setState(t, store.Running, m.now.Add(t.Lease))
		}
	}
	m.numbers.Moment = at
	return m
}

// senderLifetime is how long a silent sender is remembered.
const senderLifetime = 24 * time.Hour

// admit decides whether a command may be carried out. It returns a new Sender for it,
// or an error. If the command was already carried out, repeated is true, and x has its
// answer.
func (m *machine) admit(s *store.Stamp) (x *Sender, repeated bool, err error) {
	last := m.index.Sender(s.Sender)
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
	// Each new sender removes up to 8 senders that were silent for a day. Workers of a
	// paused store stay: they may have had nothing to claim.
	for _, name := range m.index.Gone(m.now.Add(-senderLifetime), 8) {
		if !m.numbers.Paused || m.index.Sender(name).Claim == nil {
			m.index.Remember(name, nil)
		}
	}
	return x, false, nil
}

func (m *machine) remember(s *store.Stamp, x *Sender) {
	x.Seen = m.now
	m.index.Remember(s.Sender, x)
}

// Change carries out a command that has passed its Check. The Index may keep the items:
// the caller must not change them.
func Change(index Index, at Moment, s *store.Stamp, c *store.Command) ([]store.Outcome, error) {
	m := begin(index, at)
	x, repeated, err := m.admit(s)
	if err != nil {
		return nil, err
	}
	if repeated {
		return slices.Clone(x.Outcomes), nil
	}
	x.Outcomes = m.changeAll(c)
	switch c.Op {
	case store.Pause:
		m.numbers.Paused = true
	case store.Resume:
		m.numbers.Paused = false
		m.numbers.Wakes++
	}
	m.remember(s, x)
	return slices.Clone(x.Outcomes), nil
}

// Schedule carries out a Schedule command without a stamp, as the only command of a
// transaction. The Index may keep the items.
func Schedule(index Index, at Moment, c *store.Command) []store.Outcome {
	return begin(index, at).changeAll(c)
}

func (m *machine) changeAll(c *store.Command) (outcomes []store.Outcome) {
	for i := range c.Items {
		outcomes = append(outcomes, m.change(c, &c.Items[i]))
	}
	return outcomes
}

func (m *machine) change(c *store.Command, x *store.Item) store.Outcome {
	t := m.index.Find(x.ID)
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
		return m.importEntry(t, x.Entry)
	case store.SetLimit:
		return m.setLimit(x.ID, *x.Limit)
	}
	// Purge
	if t == nil || t.State < store.Dead {
		return store.Absent
	}
	m.remove(t)
	return store.Removed
}

func (m *machine) schedule(t *Task, x *store.Item, at store.Time, keep store.Keep) store.Outcome {
	keepsOld := func(oldAt store.Time) bool {
		return keep == store.KeepEarlier && at >= oldAt || keep == store.KeepLater && at <= oldAt
	}
	stayPaused := func(oldAt store.Time) {
		if oldAt == store.Farthest && x.Task.Repeats() {
			at = oldAt
		}
	}
	switch {
	case m.succeededRecently(&x.Task):
		return store.Kept
	case t == nil:
		m.makePending(m.add(x.Task), at)
		return store.Created
	case keep == store.KeepSame && t.isSameNext(&x.Task):
		return store.Kept
	case keep == store.KeepAny, t.State == store.Pending && keepsOld(t.At), t.Following && keepsOld(t.Next):
		return store.Kept
	case t.State == store.Running:
		if t.Following {
			stayPaused(t.Next)
		}
		t.NextTask, t.Following, t.Next = &x.Task, true, at
		m.index.Changed(t)
		return store.Following
	case t.State == store.Pending:
		stayPaused(t.At)
	}
	t.Task = x.Task
	m.makePending(t, at)
	return store.Replaced
}

// isSameNext reports whether x is the same as the task that runs next: the NextTask if
// there is one.
func (t *Task) isSameNext(x *store.Task) bool {
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
		m.index.Changed(t)
		return store.Following
	}
	switch {
	case t.At == store.Farthest && t.Repeats():
		t.Renew(x.Generation)
		m.makePending(t, at)
		return store.Moved
	case t.Attempts == 0 && t.Crashes == 0:
		t.Due = at
		t.Renew(x.Generation)
	}
	m.setState(t, store.Pending, at)
	return store.Moved
}

func (m *machine) cancel(t *Task) store.Outcome {
	switch {
	case t == nil || t.State >= store.Dead:
		return store.Absent
	case t.State == store.Running:
		if !t.Stopping {
			m.numbers.Cancelled++
		}
		t.Stopping, t.Following, t.Next, t.NextTask = true, false, 0, nil
		m.index.Changed(t)
		return store.Stopping
	}
	m.numbers.Cancelled++
	m.remove(t)
	return store.Removed
}

func (m *machine) requeue(t *Task, x *store.Item, at store.Time) store.Outcome {
	if t == nil || t.State != store.Dead {
		return store.Absent
	}
	if key := store.KeyOf(t.ID); t.ID == store.DeadID(key) {
		m.remove(t)
		run := t.Task
		run.Schedule, run.ID = "", store.SingleID(key, t.Due)
		for free := m.now; m.index.Find(run.ID) != nil; free++ {
			run.ID = store.SingleID(key, free)
		}
		t = m.add(run)
	}
	t.Renew(x.Generation)
	m.makePending(t, at)
	return store.Moved
}

// importEntry adds an entry of another store.
func (m *machine) importEntry(t *Task, e *store.Entry) store.Outcome {
	if t != nil {
		return store.Kept
	}
	t = m.add(e.Task)
	t.Due, t.Attempts, t.Crashes, t.Runs, t.Failures = e.Due, e.Attempts, e.Crashes, e.Runs, e.Failures
	switch {
	case e.State >= store.Dead:
		m.setState(t, e.State, e.At)
	case e.Following:
		if e.NextTask != nil {
			t.Task = *e.NextTask
		}
		m.makePending(t, e.Next)
	case e.State == store.Running:
		m.setState(t, store.Pending, m.now)
	default:
		m.setState(t, store.Pending, e.At)
	}
	return store.Created
}
