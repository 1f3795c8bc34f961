package machine

import (
	"cmp"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Do carries out a round that has passed its Check.
func Do(ix Index, at Moment, s *store.Stamp, r *store.Round) (store.Answer, error) {
	m := begin(ix, at)
	x, again, err := m.admit(s)
	switch {
	case err != nil:
		return store.Answer{}, err
	case again:
		return m.repeat(x, r), nil
	}
	a := store.Answer{Now: m.now, Next: -1, Paused: m.n.Paused}
	for i := range r.Reports {
		a.Receipts = append(a.Receipts, m.finish(&r.Reports[i]))
	}
	for _, h := range r.Extend {
		a.Extensions = append(a.Extensions, m.extend(h, r))
	}
	if r.Claim.Asked {
		x.Claim = &Claim{slices.Clone(r.Claim.Handlers), slices.Clone(r.Claim.Schedules)}
		m.expire(r.MaxCrashes)
		m.trim()
		x.After = m.n.Fence
		m.claim(&a, r)
		x.Last = m.n.Fence
	}
	m.wakeKept()
	if r.Leave {
		x.Claim = nil
	}
	x.Receipts, x.Extensions = slices.Clone(a.Receipts), slices.Clone(a.Extensions)
	m.remember(s, x)
	return a, nil
}

// repeat answers a round that was already carried out.
func (m *machine) repeat(x *Sender, r *store.Round) store.Answer {
	a := store.Answer{Now: m.now, Next: -1, Paused: m.n.Paused, Receipts: slices.Clone(x.Receipts), Extensions: slices.Clone(x.Extensions)}
	if x.Last > x.After {
		for _, t := range m.ix.Running(Never) {
			if t.Token > x.After && t.Token <= x.Last && t.At > m.now {
				m.lease(t, r)
				a.Tasks = append(a.Tasks, t.claimed())
			}
		}
		slices.SortFunc(a.Tasks, func(a, b store.Claimed) int { return cmp.Compare(a.Token, b.Token) })
	}
	if r.Claim.Asked {
		due, next := m.ix.Due(m.within(&r.Claim), m.now, 1)
		m.next(&a, r, len(due) > 0, min(next, m.keepBack(&r.Claim, &a)))
	}
	return a
}

// held returns the task that has this lease, or nil.
func (m *machine) held(h store.Lease) *Task {
	if t := m.ix.Find(h.ID); t != nil && t.State == store.Running && t.Token == h.Token {
		return t
	}
	return nil
}

func (m *machine) extend(h store.Lease, r *store.Round) store.Extension {
	t := m.held(h)
	if t == nil {
		return store.Lost
	}
	t.Alone = t.Alone || r.Alone
	m.lease(t, r)
	if t.Stopping {
		return store.HeldStopping
	}
	return store.Held
}

// lease starts the task's lease.
func (m *machine) lease(t *Task, r *store.Round) {
	t.Lease = r.Lease
	m.put(t, store.Running, m.now.Add(r.Lease))
}

// claim gives due tasks to the worker.
func (m *machine) claim(a *store.Answer, r *store.Round) {
	// Tokens never decrease, even if the clock is set back.
	m.n.Fence = max(m.n.Fence, int64(m.now))
	due, next := m.ix.Due(m.within(&r.Claim), m.now, r.Claim.Max+1)
	left := len(due) > r.Claim.Max
	if m.n.Paused {
		due = nil
	}
	for _, t := range due[:min(len(due), r.Claim.Max)] {
		m.n.Fence++
		t.Token = m.n.Fence
		t.Attempts++
		m.lease(t, r)
		m.begins(t)
		a.Tasks = append(a.Tasks, t.claimed())
	}
	m.n.Claimed += int64(len(a.Tasks))
	m.next(a, r, left, min(next, m.keepBack(&r.Claim, a)))
}

func (t *Task) claimed() store.Claimed {
	return store.Claimed{Task: Copy(t.Task), Token: t.Token, Due: t.Due, Attempts: t.Attempts - 1, Crashes: t.Crashes}
}

// next sets when the worker must claim again: at once if there are more due tasks for
// it, and otherwise when the next task is due or a lease ends.
func (m *machine) next(a *store.Answer, r *store.Round, left bool, at store.Time) {
	switch {
	case m.n.Paused:
		at = Never
	case left:
		at = m.now
	}
	if !m.n.Paused && (r.Claim.Full && left || r.Claim.Pass && m.isBehind(&r.Claim)) {
		m.n.Wakes++
	}
	m.n.Told = max(m.n.Told, at)
	if at = min(at, m.ix.End()); at != Never {
		a.Next = max(0, at.Sub(a.Now))
	}
}

// isBehind reports whether a task is due for which the claim has no room.
func (m *machine) isBehind(c *store.Claim) bool {
	due, _ := m.ix.Due(m.within(&store.Claim{Handlers: c.Handlers, Schedules: c.Schedules}), m.now, 1)
	return len(due) > 0
}

// expire ends the attempts whose leases have expired.
func (m *machine) expire(most int) {
	for _, t := range m.ix.Running(m.now) {
		m.n.Crashed++
		m.ends(t)
		if m.follow(t) {
			continue
		}
		if last := t.Crashes+1 >= most; !last || most == 1 || t.Alone {
			t.Crashes++
			if last && !t.Repeats() {
				m.bury(t, store.TextPoison)
				m.keep(t, false, t.Failures, nil)
				continue
			}
		}
		m.note(t, store.TextCrashed)
		m.put(t, store.Pending, m.now)
	}
}

// follow handles the end of an attempt at a task that was scheduled again or cancelled
// during the attempt. It returns false for other tasks.
func (m *machine) follow(t *Task) bool {
	switch {
	case t.Following:
		if t.NextTask != nil {
			t.Task = *t.NextTask
		}
		m.fresh(t, t.Next)
	case t.Stopping:
		m.end(t)
	default:
		return false
	}
	return true
}

// finish applies a report and returns its receipt.
func (m *machine) finish(r *store.Report) store.Receipt {
	t := m.held(r.Lease)
	if t == nil {
		m.n.Refused++
		return store.Refused
	}
	m.ends(t)
	switch r.End {
	case store.Done:
		m.n.Done++
	case store.HandBack:
		m.n.Released++
	}
	t.Due = r.Due
	if r.End == store.Done && r.Keep {
		m.keep(t, true, t.Failures, r.Result)
	}
	if m.follow(t) {
		return store.Overtaken
	}
	next := r.Next.From(m.now)
	switch r.End {
	case store.Done:
		if r.Next.IsZero() {
			m.end(t)
			break
		}
		m.fresh(t, next)
	case store.Failed, store.Dropped:
		if r.End == store.Dropped {
			t.Attempts-- // the handler was not called
		}
		if r.Keep {
			m.keep(t, false, store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: r.Text}), nil)
		}
		if r.Next.IsZero() {
			m.bury(t, r.Text)
			break
		}
		m.buryRun(t, r.Text)
		m.fresh(t, next)
	case store.Retry:
		m.n.Retried++
		m.note(t, r.Text)
		m.put(t, store.Pending, next)
	case store.HandBack:
		t.Attempts-- // it does not count
		if r.Next.IsZero() {
			next = r.Due
		}
		m.put(t, store.Pending, next)
	}
	return store.Accepted
}

// buryRun makes a run of a repeating task a dead letter, which replaces the task's
// previous one.
func (m *machine) buryRun(t *Task, text string) {
	x := t.Task
	x.ID = store.DeadID(t.ID)
	runs, failures := 1, t.Failures
	if there := m.ix.Find(x.ID); there != nil {
		runs += there.Runs
		failures = slices.Concat(there.Failures, failures)
		m.end(there)
	}
	run := m.add(x)
	run.Due, run.Attempts, run.Crashes, run.Failures, run.Runs = t.Due, t.Attempts, t.Crashes, failures, runs
	m.bury(run, text)
}

func (m *machine) bury(t *Task, text string) {
	m.note(t, text)
	m.put(t, store.Dead, m.now)
	m.n.Died++
}

func (m *machine) note(t *Task, text string) {
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: text})
}

// fresh makes a task Pending without attempts.
func (m *machine) fresh(t *Task, at store.Time) {
	t.Due, t.Attempts, t.Crashes, t.Failures, t.Runs = at, 0, 0, nil, 0
	m.put(t, store.Pending, at)
}

func (m *machine) add(x store.Task) *Task {
	t := m.ix.Add(x.ID)
	t.Task = x
	return t
}

func (m *machine) end(t *Task) { m.put(t, 0, 0) }

// put moves a task to a state with a time. Without a state it deletes the task.
func (m *machine) put(t *Task, s store.State, at store.Time) {
	m.count(t.State, -1)
	m.count(s, 1)
	t.State, t.At = s, at
	if s != store.Running {
		t.Token, t.Lease, t.Alone = 0, 0, false
		t.Stopping, t.Following, t.Next, t.NextTask = false, false, 0, nil
	}
	m.ix.Changed(t)
	if l := m.limit(t.Handler); s == store.Pending && at < m.n.Told && (l == nil || !l.Kept) {
		m.n.Told = at
		m.n.Wakes++
	}
}

func (m *machine) count(s store.State, n int64) {
	switch s {
	case store.Pending:
		m.n.Pending += n
	case store.Running:
		m.n.Running += n
	case store.Dead:
		m.n.Dead += n
	case store.Past:
		m.n.Past += n
	}
}
