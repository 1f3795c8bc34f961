package machine

import (
	"cmp"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Do carries out a round that has passed its Check.
func Do(index Index, at Moment, s *store.Stamp, r *store.Round) (store.Answer, error) {
	m := beginTransaction(index, at)
	sender, repeated, err := m.admitCommand(s)
	switch {
	case err != nil:
		return store.Answer{}, err
	case repeated:
		return m.repeatRound(sender, r), nil
	}
	a := store.Answer{Now: m.now, Next: -1, Paused: m.numbers.Paused}
	for i := range r.Reports {
		a.Receipts = append(a.Receipts, m.applyReport(&r.Reports[i]))
	}
	for _, h := range r.Extend {
		a.Extensions = append(a.Extensions, m.extendLease(h, r))
	}
	if r.Claim.Asked {
		sender.Claim = &Claim{slices.Clone(r.Claim.Handlers), slices.Clone(r.Claim.Schedules), r.Worker, r.About, r.Lease}
		m.claim = sender.Claim
		m.endExpired(r.MaxCrashes)
		m.expiry = m.deleteExpired()
		m.touchRefilled()
		m.settleGroups()
		sender.After = m.numbers.Fence
		m.claimTasks(&a, r)
		sender.Last = m.numbers.Fence
	}
	m.settleAndWake()
	m.wakeForFreedLimits()
	if r.Leave {
		sender.Claim = nil
	}
	sender.Receipts, sender.Extensions = slices.Clone(a.Receipts), slices.Clone(a.Extensions)
	m.rememberSender(s, sender)
	return a, nil
}

// repeatRound answers a round that was already carried out.
func (m *machine) repeatRound(sender *Sender, r *store.Round) store.Answer {
	a := store.Answer{Now: m.now, Next: -1, Paused: m.numbers.Paused, Receipts: slices.Clone(sender.Receipts), Extensions: slices.Clone(sender.Extensions)}
	if sender.Last > sender.After {
		for _, t := range m.index.Running(Never) {
			if t.Token > sender.After && t.Token <= sender.Last && t.At > m.now {
				m.startLease(t, r)
				a.Tasks = append(a.Tasks, t.toClaimed())
			}
		}
		slices.SortFunc(a.Tasks, func(a, b store.Claimed) int { return cmp.Compare(a.Token, b.Token) })
	}
	if r.Claim.Asked {
		a.PausedHandlers = m.pausedHandlers(r.Claim.Handlers)
		due, p, next := m.findDue(&r.Claim, a.PausedHandlers, r.MaxCrashes, 1)
		m.setNext(&a, r, p, len(due) > 0, next)
	}
	return a
}

// findLeased returns the task that has this lease, or nil.
func (m *machine) findLeased(h store.Lease) *Task {
	if t := m.index.Find(h.ID); t != nil && t.State == store.Running && t.Token == h.Token {
		return t
	}
	return nil
}

func (m *machine) extendLease(h store.Lease, r *store.Round) store.Extension {
	t := m.findLeased(h)
	if t == nil {
		return store.Lost
	}
	m.startLease(t, r)
	if t.Stopping {
		return store.HeldStopping
	}
	return store.Held
}

func (m *machine) startLease(t *Task, r *store.Round) {
	t.Lease = r.Lease
	m.setState(t, store.Running, m.now.Add(r.Lease))
}

func (m *machine) claimTasks(a *store.Answer, r *store.Round) {
	a.PausedHandlers = m.pausedHandlers(r.Claim.Handlers)
	due, p, next := m.findDue(&r.Claim, a.PausedHandlers, r.MaxCrashes, r.Claim.Max+1)
	moreDue := len(due) > r.Claim.Max
	for _, t := range due[:min(len(due), r.Claim.Max)] {
		t.Token, t.Worker = m.nextNumber(), r.Worker
		t.Attempts++
		t.Once = false
		m.startLease(t, r)
		m.takePermit(t)
		a.Tasks = append(a.Tasks, t.toClaimed())
	}
	m.numbers.Claimed += int64(len(a.Tasks))
	// The claim has seen these tasks. What it unparks, it may get the next time.
	m.unparked = slices.DeleteFunc(m.unparked, func(t *Task) bool { return m.claim.Knows(t.Handler, t.Schedule) })
	seen := len(m.unparked)
	m.settleGroups()
	for _, t := range m.unparked[seen:] {
		next = min(next, t.At)
	}
	m.unparked = m.unparked[:seen]
	m.setNext(a, r, p, moreDue, next)
}

func (t *Task) toClaimed() store.Claimed {
	return store.Claimed{Task: Copy(t.Task), Token: t.Token, Due: t.Due, Attempts: t.Attempts - 1, Crashes: t.Crashes, Suspect: t.Suspect, Following: t.Following}
}

// findDue returns up to n due tasks that the claim may get. next is when it may get another
// task. The Index does not look at tasks of the paused handlers.
func (m *machine) findDue(c *store.Claim, paused []string, maxCrashes, n int) (due []*Task, p *Picker, next store.Time) {
	var limits map[string]*Limit
	if m.numbers.Limits > 0 {
		limits = m.index.Limits()
	}
	p = newPicker(c, maxCrashes, m.now, limits, m.groupOf)
	if m.numbers.Paused {
		return nil, p, Never
	}
	if paused != nil {
		x := *c
		x.Rooms = nil // the Picker has them
		x.Handlers = slices.DeleteFunc(slices.Clone(c.Handlers), func(h string) bool { return slices.Contains(paused, h) })
		c = &x
	}
	due, next = m.index.Due(c, p, m.now, n)
	return due, p, min(next, p.permitAt)
}

// setNext sets the answer's Next: zero if more tasks are due, otherwise the time until
// nextAt, the end of a lease or the expiry of an entry. It also wakes other workers as Full and Pass ask.
func (m *machine) setNext(a *store.Answer, r *store.Round, p *Picker, moreDue bool, nextAt store.Time) {
	a.Limited = p.limited || m.heldByGroup
	if !moreDue {
		a.Suspects = p.waiting
	}
	hasNoRoom := p.exceeded || p.waiting != store.NoneWaits
	switch {
	case m.numbers.Paused:
		nextAt = Never
	case moreDue:
		nextAt = m.now
	default:
		nextAt = min(nextAt, m.nextRefill())
		moreDue = nextAt <= m.now
	}
	if !m.numbers.Paused && (r.Claim.Full && moreDue || r.Claim.Pass && hasNoRoom) {
		m.numbers.Wakes++
	}
	m.numbers.Told = max(m.numbers.Told, nextAt)
	if nextAt = min(nextAt, m.index.End(), m.expiry); nextAt != Never {
		a.Next = max(0, nextAt.Sub(a.Now))
	}
}

func (m *machine) endExpired(maxCrashes int) {
	for _, t := range m.index.Running(m.now) {
		m.numbers.Crashed++
		m.returnPermit(t)
		if m.applyChange(t) {
			continue
		}
		t.AdoptChange()
		if t.Crashes++; t.Crashes >= maxCrashes && !t.Repeats() {
			m.addFollowUp(t, &t.Task, false, store.TextPoison)
			m.makeDead(t, store.TextPoison)
			m.keepRun(t, &t.Task, false, t.Failures, nil)
			continue
		}
		t.Suspect = store.IsSuspect(t.Crashes, maxCrashes)
		m.addFailure(t, store.TextCrashed)
		m.setState(t, store.Pending, m.now)
	}
}

// applyChange is called when an attempt ends. If the task was cancelled, or is to be
// another task, the result of the attempt does not matter: applyChange removes or replaces
// the task. Otherwise it returns false.
func (m *machine) applyChange(t *Task) bool {
	switch {
	case t.Following && !t.ChangesOnlyLater():
		m.follow(t)
	case t.Stopping && !t.Following:
		m.removeTask(t)
	default:
		return false
	}
	return true
}

// follow ends the run of a Following task.
func (m *machine) follow(t *Task) {
	if t.NextTask != nil {
		t.Task = *t.NextTask
	}
	if t.Next == store.Never {
		m.removeTask(t)
		return
	}
	m.makePending(t, t.Next)
}

func (m *machine) applyReport(r *store.Report) store.Receipt {
	t := m.findLeased(r.Lease)
	if t == nil {
		m.numbers.Refused++
		return store.Refused
	}
	m.returnPermit(t)
	switch r.End {
	case store.Done:
		m.numbers.Done++
	case store.HandBack:
		m.numbers.Released++
	}
	t.Due = r.Due
	if r.End == store.Done && r.Keep {
		m.keepRun(t, &t.Task, true, t.Failures, r.Result)
		if !t.Stopping {
			m.addFollowUp(t, &t.Task, true, "")
		}
	}
	if m.applyChange(t) {
		return store.Overtaken
	}
	run := t.Task // AdoptChange may replace it
	nextDue, isLastRun := r.Next.From(m.now), r.Next.IsZero()
	followsAt := t.Following && t.Next != 0
	if end := r.End; !followsAt || end == store.Retry || end == store.HandBack {
		t.AdoptChange()
	}
	switch r.End {
	case store.Done:
		if followsAt {
			m.follow(t)
			return store.Overtaken
		}
		if isLastRun {
			m.removeTask(t)
			break
		}
		m.makePending(t, nextDue)
	case store.Failed, store.Dropped:
		if r.End == store.Dropped {
			t.Attempts-- // the handler was not called
		}
		if r.Keep {
			m.keepRun(t, &run, false, store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: r.Text}), r.Result)
			m.addFollowUp(t, &run, false, r.Text)
		}
		if isLastRun && !followsAt {
			m.makeDead(t, r.Text)
			break
		}
		m.makeRunDead(t, r.Text)
		if followsAt {
			m.follow(t)
			break
		}
		m.makePending(t, nextDue)
	case store.Retry:
		m.numbers.Retried++
		m.addFailure(t, r.Text)
		m.setState(t, store.Pending, nextDue)
	case store.HandBack:
		if r.Text != "" {
			t.Failures = store.NoteHandBack(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: r.Text})
		}
		t.Attempts-- // it does not count
		if isLastRun {
			nextDue = r.Due
		}
		m.setState(t, store.Pending, nextDue)
	}
	return store.Accepted
}

// makeRunDead makes a dead letter of a repeating task's run. If the task already has a
// dead letter, the new one replaces it, with the failures of both.
func (m *machine) makeRunDead(t *Task, text string) {
	x := t.Task
	x.ID = store.DeadID(t.ID)
	runs, failures := 1, t.Failures
	if old := m.index.Find(x.ID); old != nil {
		runs += old.Runs
		failures = slices.Concat(old.Failures, failures)
		m.removeTask(old)
	}
	deadRun := m.addTask(x)
	deadRun.Version = t.Version
	deadRun.Due, deadRun.Attempts, deadRun.Crashes, deadRun.Failures, deadRun.Runs = t.Due, t.Attempts, t.Crashes, failures, runs
	m.makeDead(deadRun, text)
}

func (m *machine) makeDead(t *Task, text string) {
	t.Suspect = false
	m.addFailure(t, text)
	m.setState(t, store.Dead, m.now)
	m.numbers.Died++
}

func (m *machine) addFailure(t *Task, text string) {
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: text})
}

// makePending makes a task Pending without attempts. A paused task stays paused.
func (m *machine) makePending(t *Task, at store.Time) {
	t.Following, t.Next, t.NextTask, t.Once = false, 0, nil, false
	t.Due, t.Attempts, t.Crashes, t.Suspect, t.Failures, t.Runs = at, 0, 0, false, nil, 0
	m.setState(t, store.Pending, at)
}

func (m *machine) addTask(x store.Task) *Task {
	t := m.index.Add(x.ID)
	t.Task = x
	return t
}

func (m *machine) removeTask(t *Task) { m.setState(t, 0, 0) }

// setState sets the task's State and At. If the State is 0, the task is deleted.
func (m *machine) setState(t *Task, s store.State, at store.Time) {
	m.addCount(t.State, -1)
	m.addCount(s, 1)
	if t.State == store.Pending || s == store.Pending {
		m.touchGroup(t)
	}
	t.State, t.At = s, at
	t.Parked = s == store.Pending && t.Group != "" && !t.Waits() // until settleGroups
	if s != store.Running {
		t.Token, t.Worker, t.Lease, t.Stopping = 0, 0, 0, false
	}
	if s != store.Running && s != store.Pending {
		t.Following, t.Next, t.NextTask, t.Paused, t.Once = false, 0, nil, false, false
	}
	m.index.Changed(t)
	m.wakeIfEarlier(t)
}

// wakeIfEarlier wakes workers if a Pending task is due before they claim again.
func (m *machine) wakeIfEarlier(t *Task) {
	if t.State != store.Pending || t.Parked || t.Waits() || t.At >= m.numbers.Told {
		return
	}
	if l := m.limitOf(t.Handler); l == nil || !l.Kept && l.Paused == 0 {
		m.numbers.Told = t.At
		m.numbers.Wakes++
	}
}

func (m *machine) addCount(s store.State, n int64) {
	switch s {
	case store.Pending:
		m.numbers.Pending += n
	case store.Running:
		m.numbers.Running += n
	case store.Dead:
		m.numbers.Dead += n
	case store.Past:
		m.numbers.Past += n
	}
}
