package storetest

import (
	"github.com/tickless/tickless/durable/store"
)

func testImport(b *storeTest) {
	now := b.now()
	farFuture := now.Add(1000 * b.unit)
	failures := []store.Failure{{Attempt: 1, Time: now - 9, Text: "first"}, {Attempt: 2, Time: now - 5, Text: "second"}, {Attempt: 3, Time: now - 4, Text: "third", HandBacks: 12}}
	newEntry := func(id string, s store.State, at store.Time) store.Entry {
		e := store.Entry{Task: task(id), State: s, At: at, Due: now - 10, Attempts: 2, Crashes: 1, Failures: failures}
		e.Schedule = "daily"
		return e
	}
	triedEntry, dead, runs := newEntry("tried", store.Pending, farFuture), newEntry("dead", store.Dead, now-3), newEntry(store.DeadID("repeats"), store.Dead, now-2)
	freshEntry := store.Entry{Task: task("fresh"), State: store.Pending, At: farFuture, Due: farFuture}
	runs.Runs = 7
	want := []store.Entry{freshEntry, triedEntry, dead, runs}
	var items []store.Item
	for _, e := range want {
		items = append(items, store.Item{ID: e.ID, Entry: &e})
	}
	for _, outcome := range b.sendCommand(store.Command{Op: store.Import, Items: items}) {
		equal(b, "outcome", outcome, store.Created)
	}
	want = expectedList(want, store.Filter{})
	equal(b, "imported entries", b.allEntries(), want)
	for _, outcome := range b.sendCommand(store.Command{Op: store.Import, Items: items}) {
		equal(b, "outcome", outcome, store.Kept)
	}
	equal(b, "entries after a second import", b.allEntries(), want)
	equal(b, "counters", b.stats().Counters, store.Counters{})

	// A task that was running in the other store is due now, or at its new time if it was
	// scheduled again.
	running, follows := newEntry("running", store.Running, farFuture), newEntry("follows", store.Running, farFuture)
	running.Schedule, follows.Schedule = "", ""
	running.Token, follows.Token = 17, 18
	follows.Following, follows.Stopping, follows.Next = true, true, farFuture
	replaced, next := follows, task("replaced")
	replaced.Task, replaced.NextTask = task("replaced"), &next
	next.Handler, next.Record = "another", []byte("another")
	items = []store.Item{{ID: "running", Entry: &running}, {ID: "follows", Entry: &follows}, {ID: "replaced", Entry: &replaced}}
	b.sendCommand(store.Command{Op: store.Import, Items: items})
	x := b.claimOne("running")
	equal(b, "attempts", x.Attempts, 2)
	equal(b, "crashes", x.Crashes, 1)
	equal(b, "due", x.Due, now-10)
	e := b.getEntry("follows")
	b.require(e.State == store.Pending && e.At == farFuture && e.Due == farFuture && e.Attempts == 0, "%+v", e)
	equal(b, "the task that follows", b.getEntry("replaced"), store.Entry{Task: next, State: store.Pending, At: farFuture, Due: farFuture})
	equal(b, "requeue", b.changeTask(store.Requeue, "dead", b.after(1000)), store.Moved)

	for what, f := range map[string]func(e *store.Entry){
		"state":         func(e *store.Entry) { e.State = 0 },
		"at":            func(e *store.Entry) { e.At = -1 },
		"due":           func(e *store.Entry) { e.Due = store.Farthest + 1 },
		"attempts":      func(e *store.Entry) { e.Attempts = -1 },
		"many attempts": func(e *store.Entry) { e.Attempts = 1<<30 + 1 },
		"many crashes":  func(e *store.Entry) { e.Crashes = 1<<30 + 1 },
		"many runs":     func(e *store.Entry) { e.Runs = 1<<30 + 1 },
		"attempt":       func(e *store.Entry) { e.Failures = []store.Failure{{Attempt: 1<<30 + 1}} },
		"hand-backs":    func(e *store.Entry) { e.Failures = []store.Failure{{HandBacks: -1}} },
		"failed early":  func(e *store.Entry) { e.Failures = []store.Failure{{Time: -1}} },
		"failed late":   func(e *store.Entry) { e.Failures = []store.Failure{{Time: store.Farthest + 1}} },
		"failures":      func(e *store.Entry) { e.Failures = make([]store.Failure, store.MaxFailures+1) },
		"text":          func(e *store.Entry) { e.Failures = []store.Failure{{Text: string(make([]byte, store.MaxText+1))}} },
		"id":            func(e *store.Entry) { e.ID = "other" },
		"handler":       func(e *store.Entry) { e.Handler = "" },
		"stopping":      func(e *store.Entry) { e.State, e.Stopping = store.Running, true },
		"next":          func(e *store.Entry) { e.State, e.NextTask = store.Running, &next },
		"next id":       func(e *store.Entry) { e.State, e.Following, e.NextTask = store.Running, true, &next },
	} {
		invalidEntry := newEntry("bad", store.Pending, farFuture)
		f(&invalidEntry)
		_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.Import, Items: []store.Item{{ID: "bad", Entry: &invalidEntry}}})
		b.requireError(err, store.ErrInvalid)
		_ = what
	}
	for _, c := range []store.Command{
		{Op: store.Import, Items: []store.Item{{ID: "bad"}}},
		{Op: store.Cancel, Items: []store.Item{{ID: "bad", Entry: &triedEntry}}},
	} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), c)
		b.requireError(err, store.ErrInvalid)
	}
	b.requireAbsent("bad")
}

// importEntry applies Import to the model and returns the expected outcome.
func (m *model) importEntry(t *modelTask, e *store.Entry) store.Outcome {
	if t != nil {
		return store.Kept
	}
	t = &modelTask{Entry: *e}
	t.Token, t.Worker, t.Version, t.Stopping, t.HandlerPaused = 0, 0, 0, false, false
	repeats := e.Repeats() && (e.NextTask == nil || e.NextTask.Repeats())
	switch {
	case e.State >= store.Dead:
		t.Paused, t.Once, t.Following, t.Next, t.NextTask = false, false, false, 0, nil
	case e.Following && (e.Stopping || !repeats || e.Next == store.Farthest):
		m.follow(t)
		t.Once = e.Once
	default:
		m.adoptChange(t)
		t.NextTask = nil
	}
	if t.State == store.Running {
		t.State, t.At = store.Pending, m.now
	}
	t.Suspect = t.State == store.Pending && t.Crashes >= 3
	m.tasks[e.ID] = t
	m.caseCounts["imported"]++
	return store.Created
}

// importRandomEntry imports an entry of the store again, with another key.
func (m *modelTest) importRandomEntry() {
	all, _ := m.expected()
	if len(all) == 0 {
		return
	}
	e := expectedList(all, store.Filter{})[m.rng.IntN(len(all))]
	if !e.Continues() {
		return
	}
	e.ID = m.randomKey() + e.ID[len(store.KeyOf(e.ID)):]
	if e.NextTask != nil {
		next := *e.NextTask
		next.ID = e.ID
		e.NextTask = &next
	}
	m.sendAndApply(store.Command{Op: store.Import, Items: []store.Item{{ID: e.ID, Entry: &e}}})
}
