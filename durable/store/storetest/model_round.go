package storetest

import (
	"slices"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// randomRound sends a worker's round: some reports, some extensions, and a claim.
func (m *modelTest) randomRound() {
	r := store.Round{Lease: modelLease, MaxCrashes: []int{1, 2, 2, 3, 5}[m.rng.IntN(5)], Leave: m.rng.IntN(20) == 0}
	for range m.rng.IntN(4) {
		if x, ok := m.randomReport(r.Reports); ok {
			r.Reports = append(r.Reports, x)
		}
	}
	for range m.rng.IntN(2) {
		if len(m.believedLeases) > 0 {
			x := m.believedLeases[m.rng.IntN(len(m.believedLeases))]
			if i := slices.IndexFunc(m.believedLeases, m.isStopping); i >= 0 && m.rng.IntN(2) == 0 {
				x = m.believedLeases[i] // a stopping task would otherwise be rare
			}
			r.Extend = append(r.Extend, x.Lease)
		}
	}
	if m.rng.IntN(3) > 0 {
		r.Claim = store.Claim{Asked: true, Max: m.rng.IntN(5), Full: m.rng.IntN(3) == 0, Handlers: []string{"h0"}}
		if m.rng.IntN(2) == 0 {
			r.Claim.Handlers = []string{"h1", "h0"}
		}
		for i := range m.rng.IntN(3) {
			r.Claim.Schedules = append(r.Claim.Schedules, "s"+strconv.Itoa(i))
		}
		m.addRandomRooms(&r.Claim)
	}
	worker := m.rng.IntN(3)
	r.Worker = int64(worker) * (store.MaxWorker / 2) // the first has none
	x := sentCommand{stamp: m.nextStamp("worker" + strconv.Itoa(worker)), round: &r}
	m.sendTooLate(&x)
	for _, c := range m.send(x).Tasks {
		m.believedLeases = append(m.believedLeases, believedLease{leaseOf(c), c.Due})
	}
	m.recordSent(x)
}

func (m *model) findLeased(h store.Lease) *modelTask {
	t := m.tasks[h.ID]
	if t == nil || t.State != store.Running || t.Token != h.Token {
		return nil
	}
	return t
}

func (m *modelTest) isStopping(x believedLease) bool {
	t := m.findLeased(x.Lease)
	return t != nil && t.Stopping
}

func (m *model) extendLease(h store.Lease, r *store.Round) store.Extension {
	t := m.findLeased(h)
	if t == nil {
		m.caseCounts["lost"]++
		return store.Lost
	}
	t.startLease(m.now, r)
	m.caseCounts["extended"]++
	if t.Stopping {
		m.caseCounts["stopped"]++
		return store.HeldStopping
	}
	return store.Held
}

// randomReport returns a report on a random lease, or false if the parameter others has a
// report on the same task.
func (m *modelTest) randomReport(others []store.Report) (store.Report, bool) {
	if len(m.believedLeases) == 0 {
		return store.Report{}, false
	}
	i := m.rng.IntN(len(m.believedLeases))
	h := m.believedLeases[i]
	if slices.ContainsFunc(others, func(r store.Report) bool { return r.ID == h.ID }) {
		return store.Report{}, false
	}
	if m.rng.IntN(4) > 0 { // otherwise the report is repeated, or comes late
		m.believedLeases = slices.Delete(m.believedLeases, i, i+1)
	}
	x := store.Report{Lease: h.Lease, Due: h.due, Text: "text of " + h.ID}
	if m.rng.IntN(8) == 0 {
		x.Text = ""
	}
	if m.rng.IntN(4) == 0 {
		x.Due += store.Time(m.rng.IntN(100)) // the worker skipped missed runs
	}
	x.End = []store.End{store.Done, store.Done, store.Retry, store.Failed, store.HandBack, store.Dropped}[m.rng.IntN(6)]
	// If the task already has a dead letter, often let this run fail too.
	failsAgain := m.tasks[store.DeadID(h.ID)] != nil && m.rng.IntN(2) == 0
	if failsAgain {
		x.End = store.Failed
	}
	x.Keep = m.rng.IntN(4) > 0
	if x.Keep && (x.End == store.Done || x.End == store.Failed) && m.rng.IntN(2) == 0 {
		x.Result = []byte("result\x00\xff of " + h.ID)
	}
	if store.IsSingle(h.ID) && x.End != store.Retry && x.End != store.HandBack {
		return x, true // the task does not repeat
	}
	if failsAgain || x.End == store.Retry || m.rng.IntN(3) == 0 {
		x.Next = m.randomWhen()
	}
	return x, true
}

// applyReport applies a report to the model and returns the expected receipt.
func (m *model) applyReport(x store.Report) store.Receipt {
	t := m.findLeased(x.Lease)
	if t == nil {
		m.counters.Refused++
		m.caseCounts["refused"]++
		return store.Refused
	}
	nextDue := x.Next.From(m.now)
	switch x.End {
	case store.Done:
		m.counters.Done++
	case store.HandBack:
		m.counters.Released++
	}
	if x.End == store.Done && x.Keep {
		t.Due = x.Due
		m.keepRun(&t.Entry, true, t.Failures, x.Result)
		if !t.Stopping {
			m.addFollowUp(t.Entry, true, "")
		}
	}
	ended := t.Entry
	if m.applyChange(t) {
		return store.Overtaken
	}
	t.Token, t.Worker, t.Due = 0, 0, x.Due
	last, followed := x.Next.IsZero(), t.Following && t.Next > 0
	if followed && x.End == store.Done {
		m.caseCounts["followed after the run"]++
		m.follow(t)
		return store.Overtaken
	}
	if !followed || x.End == store.Retry || x.End == store.HandBack {
		m.adoptChange(t)
	}
	if x.End == store.Dropped {
		m.caseCounts["dropped"]++
		t.Attempts--
	}
	failure := store.Failure{Attempt: t.Attempts, Time: m.now, Text: x.Text}
	if x.Keep && (x.End == store.Failed || x.End == store.Dropped) {
		ended.Due, ended.Attempts = x.Due, t.Attempts
		m.keepRun(&ended, false, store.Note(t.Failures, failure), x.Result)
		m.addFollowUp(ended, false, x.Text)
	}
	switch {
	case x.End == store.Done && last:
		m.caseCounts["done"]++
		delete(m.tasks, x.ID)
	case x.End == store.Done:
		m.caseCounts["done, repeats"]++
		t.setPending(t.Task, nextDue)
	case x.End == store.Retry:
		m.counters.Retried++
		m.caseCounts["retried"]++
		t.State, t.At, t.Failures = store.Pending, nextDue, store.Note(t.Failures, failure)
	case x.End == store.HandBack:
		m.caseCounts["handed back"]++
		if failure.HandBacks = 1; x.Text != "" {
			if i := slices.IndexFunc(t.Failures, func(f store.Failure) bool { return f.HandBacks > 0 }); i >= 0 {
				m.caseCounts["handed back again"]++
				failure.HandBacks += t.Failures[i].HandBacks
				t.Failures = slices.Delete(slices.Clone(t.Failures), i, i+1)
			}
			t.Failures = store.Note(t.Failures, failure)
		}
		t.State, t.At, t.Attempts = store.Pending, x.Due, t.Attempts-1
		if !x.Next.IsZero() {
			m.caseCounts["handed back for later"]++
			t.At = nextDue
		}
	case last && !followed:
		m.counters.Died++
		m.caseCounts["died"]++
		t.Paused = false
		t.State, t.Suspect, t.At, t.Failures = store.Dead, false, m.now, store.Note(t.Failures, failure)
	default:
		m.counters.Died++
		m.caseCounts["run died"]++
		deadRun := &modelTask{Entry: t.Entry, newVersion: t.newVersion, versionBefore: t.versionBefore}
		deadRun.ID, deadRun.Paused = store.DeadID(x.ID), false
		deadRun.State, deadRun.Suspect, deadRun.At, deadRun.Runs = store.Dead, false, m.now, 1
		if old := m.tasks[deadRun.ID]; old != nil {
			m.caseCounts["run died again"]++
			deadRun.Runs += old.Runs
			deadRun.Failures = append(slices.Clone(old.Failures), t.Failures...)
		}
		deadRun.Failures = store.Note(deadRun.Failures, failure)
		deadRun.Following, deadRun.Next, deadRun.NextTask = false, 0, nil
		m.tasks[deadRun.ID] = deadRun
		if followed {
			m.caseCounts["run died and is followed"]++
			m.follow(t)
		} else {
			t.setPending(t.Task, nextDue)
		}
	}
	return store.Accepted
}

// applyChange handles the end of an attempt. It returns false unless the task was
// scheduled again or cancelled meanwhile.
func (m *model) applyChange(t *modelTask) bool {
	repeats := t.Repeats() && (t.NextTask == nil || t.NextTask.Repeats())
	switch {
	case t.Following && (t.Stopping || !repeats || t.Next == store.Farthest):
		m.caseCounts["followed"]++
		m.follow(t)
		return true
	case t.Stopping && !t.Following:
		m.caseCounts["forgotten"]++
		delete(m.tasks, t.ID)
		return true
	}
	return false
}

// follow ends the run of a task that was scheduled again meanwhile.
func (m *model) follow(t *modelTask) {
	x := t.Task
	if t.NextTask != nil {
		x = *t.NextTask
	}
	if t.Next > store.Farthest {
		m.caseCounts["over after the run"]++
		delete(m.tasks, t.ID)
		return
	}
	t.setPending(x, t.Next)
}

// adoptChange gives a run that goes on the content that was scheduled during the attempt.
func (m *model) adoptChange(t *modelTask) {
	if t.NextTask != nil {
		m.caseCounts["new content after an attempt"]++
		if t.Next == 0 || !t.Same(t.NextTask) {
			t.Task, t.NextTask = *t.NextTask, nil
		}
	}
	t.Following = t.Following && t.Next > 0
}

// endExpired ends the attempts whose leases have expired, as every claim does first.
func (m *model) endExpired(maxCrashes int) {
	poisonedByKey := make(map[string][]*modelTask)
	for _, t := range m.tasks {
		if t.State != store.Running || t.At > m.now {
			continue
		}
		m.counters.Crashed++
		m.caseCounts["crashed"]++
		if m.applyChange(t) {
			continue
		}
		ended := t.Entry
		m.adoptChange(t)
		t.Token, t.Worker, t.At, t.State = 0, 0, m.now, store.Pending
		failureText := store.TextCrashed
		t.Crashes++
		t.Suspect = maxCrashes > 1 && (t.Crashes >= 3 || t.Crashes >= maxCrashes-1)
		if t.Crashes >= maxCrashes && t.Repeats() {
			m.caseCounts["poison that repeats"]++
		} else if t.Crashes >= maxCrashes {
			m.counters.Died++
			m.caseCounts["poisoned"]++
			t.State, t.Suspect, t.Paused, failureText = store.Dead, false, false, store.TextPoison
			ended.Crashes = t.Crashes
			m.addFollowUp(ended, false, failureText)
		}
		t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: m.now, Text: failureText})
		if t.State == store.Dead {
			key := store.KeyOf(t.ID)
			poisonedByKey[key] = append(poisonedByKey[key], t)
		}
	}
	for key, tasks := range poisonedByKey {
		m.keepPoisonedRuns(key, tasks)
	}
	for id, t := range m.tasks {
		if t.HasExpired(m.now) {
			m.caseCounts["trimmed"]++
			delete(m.tasks, id)
		}
	}
}

// checkClaimed checks the tasks that a claim got. Tasks that are due at the same time may
// come in any order.
func (m *model) checkClaimed(r *store.Round, a *store.Answer) {
	var due []*modelTask
	for _, t := range m.tasks {
		if t.State != store.Pending || t.At > m.now || m.paused || !r.Claim.Asked {
			continue
		}
		if t.Paused && !t.Once {
			m.caseCounts["a paused task waits"]++
			continue
		}
		if _, paused := m.pausedHandlers[t.Handler]; paused {
			m.caseCounts["kept by a paused handler"]++
			continue
		}
		if matchesClaim(&r.Claim, t.Handler, t.Schedule) {
			due = append(due, t)
		} else {
			m.caseCounts["unknown left"]++
		}
	}
	room := roomOf(r)
	m.applyLimits(room)
	sure := m.withoutBehind(due)
	for i, x := range a.Tasks {
		m.check(i < r.Claim.Max, "claimed %d tasks of %d", len(a.Tasks), r.Claim.Max)
		t := m.tasks[x.ID]
		sureRoom := *room
		next, _, _ := room.oldestDue(due)
		if sureDue := sure(due); !slices.Contains(next, t) && len(sureDue) < len(due) {
			if slices.Contains(due, t) && !slices.Contains(sureDue, t) {
				sureDue = append(sureDue, t) // the claim ignored others
			}
			*room = sureRoom
			next, _, _ = room.oldestDue(sureDue)
		}
		m.check(t != nil && t.State == store.Pending && slices.Contains(next, t), "claimed %+v, which is %+v, but the oldest tasks are %+v", x, t, next)
		room.countClaimed(t)
		due = slices.DeleteFunc(due, func(u *modelTask) bool { return u == t })
		equal(m.failer, "the claimed task", x,
			store.Claimed{Task: t.Task, Token: x.Token, Due: t.Due, Attempts: t.Attempts, Crashes: t.Crashes, Suspect: t.Suspect, Following: t.Following})
		// At least the store's time, so that tokens grow when tasks move to another store.
		m.check(x.Token > m.lastToken && x.Token >= int64(m.now), "token %d came after %d at %d", x.Token, m.lastToken, m.now)
		m.lastToken = x.Token
		if t.Once {
			m.caseCounts["a paused task runs once"]++
		}
		t.Once = false
		t.State, t.Token, t.Worker, t.Attempts = store.Running, x.Token, r.Worker, t.Attempts+1
		t.startLease(m.now, r)
		m.counters.Claimed++
		m.caseCounts["claimed"]++
		if l := m.limits[t.Handler]; l != nil {
			l.countClaimed(m.now)
			m.caseCounts["limited"]++
		}
		if l := m.limitOfGroup(t); l != nil {
			l.countClaimed(m.now)
			m.groupsFullAt[groupOf(t)] = l.fullAt
			m.caseCounts["limited by group"]++
		}
		if r.Claim.Rooms != nil {
			m.caseCounts["claimed with rooms"]++
		}
	}
	_, certain, waiting := room.oldestDue(sure(due))
	for _, x := range a.Tasks {
		delete(m.behind, groupOf(m.tasks[x.ID]))
	}
	switch {
	case certain:
		equal(m.failer, "tasks claimed", len(a.Tasks), r.Claim.Max)
		equal(m.failer, "next, with more that is due", a.Next, 0)
	case len(waiting) == 0 || len(sure(due)) < len(due):
	case room.unsure && !room.suspectRefused:
	case room.suspectsAllowed > 0:
		m.caseCounts["last suspect waits"]++
		equal(m.failer, "suspects", a.Suspects, store.LastWaits)
	default:
		m.caseCounts["suspects left"]++
		equal(m.failer, "suspects", a.Suspects, store.SomeWait)
	}
	m.checkLimitsInAnswer(r, a, due)
	m.checkNext(r, a, room)
	var pausedHandlers []string
	for _, h := range r.Claim.Handlers {
		if _, paused := m.pausedHandlers[h]; paused {
			pausedHandlers = append(pausedHandlers, h)
		}
	}
	equal(m.failer, "paused handlers", a.PausedHandlers, pausedHandlers)
}
