package machine

import "github.com/tickless/tickless/durable/store"

// keepRun stores what a task asks to keep of a run that has finished.
func (m *machine) keepRun(t *Task, done bool, failures []store.Failure, result []byte) {
	k, ok := t.Keeps()
	if !ok {
		return
	}
	history, unique := k.For > 0 || k.Most > 0, done && k.Unique > 0
	if !history && !unique {
		return
	}
	key := store.KeyOf(t.ID)
	head := m.findOrAdd(store.HeadID(key))
	head.Handler = t.Handler
	if unique {
		head.Due = m.now.Add(k.Unique)
	}
	headExpiry := head.Due
	if history {
		number := head.Runs
		if head.Runs++; k.Most > 0 {
			number %= k.Most
		}
		runExpiry := store.Farthest
		if k.For > 0 {
			runExpiry = m.now.Add(k.For)
		}
		run := m.findOrAdd(store.RunID(key, number))
		run.Handler, run.Record = t.Handler, store.RunRecord(done, m.now, result)
		run.Due, run.Attempts, run.Crashes, run.Failures = t.Due, t.Attempts, t.Crashes, failures
		m.setState(run, store.Past, runExpiry)
		headExpiry = max(headExpiry, runExpiry)
	}
	m.setState(head, store.Past, max(head.At, headExpiry))
}

// findOrAdd returns the task with an id, or a new one.
func (m *machine) findOrAdd(id string) *Task {
	if t := m.index.Find(id); t != nil {
		return t
	}
	return m.add(store.Task{ID: id})
}

// succeededRecently reports whether the key succeeded so recently that x must not be scheduled.
func (m *machine) succeededRecently(x *store.Task) bool {
	if k, ok := x.Keeps(); !ok || k.Unique == 0 {
		return false
	}
	head := m.index.Find(store.HeadID(x.ID))
	return head != nil && head.Due > m.now
}

// maxExpired is how many expired entries a claim deletes at most.
const maxExpired = 100

func (m *machine) deleteExpired() {
	if m.numbers.Past == 0 {
		return
	}
	for _, t := range m.index.Over(m.now, maxExpired) {
		m.remove(t)
	}
}
