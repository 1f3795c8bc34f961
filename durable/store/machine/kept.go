package machine

import "github.com/tickless/tickless/durable/store"

// keep stores what a task asks to keep of a finished run.
func (m *machine) keep(t *Task, done bool, failures []store.Failure, result []byte) {
	k, ok := t.Keeps()
	if !ok {
		return
	}
	history, unique := k.For > 0 || k.Most > 0, done && k.Unique > 0
	if !history && !unique {
		return
	}
	key := store.KeyOf(t.ID)
	head := m.entry(store.HeadID(key))
	head.Handler = t.Handler
	if unique {
		head.Due = m.now.Add(k.Unique)
	}
	until := head.Due
	if history {
		number := head.Runs
		if head.Runs++; k.Most > 0 {
			number %= k.Most
		}
		ends := store.Farthest
		if k.For > 0 {
			ends = m.now.Add(k.For)
		}
		run := m.entry(store.RunID(key, number))
		run.Handler, run.Record = t.Handler, store.RunRecord(done, m.now, result)
		run.Due, run.Attempts, run.Crashes, run.Failures = t.Due, t.Attempts, t.Crashes, failures
		m.put(run, store.Past, ends)
		until = max(until, ends)
	}
	m.put(head, store.Past, max(head.At, until))
}

// entry returns the entry with an id, or a new one.
func (m *machine) entry(id string) *Task {
	if t := m.ix.Find(id); t != nil {
		return t
	}
	return m.add(store.Task{ID: id})
}

// isUnique reports whether the key was done so recently that x must not be scheduled.
func (m *machine) isUnique(x *store.Task) bool {
	if k, ok := x.Keeps(); !ok || k.Unique == 0 {
		return false
	}
	head := m.ix.Find(store.HeadID(x.ID))
	return head != nil && head.Due > m.now
}

// trimmed is how many expired entries a claim deletes at most.
const trimmed = 100

func (m *machine) trim() {
	if m.n.Past == 0 {
		return
	}
	for _, t := range m.ix.Over(m.now, trimmed) {
		m.end(t)
	}
}
