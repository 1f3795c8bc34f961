package storetest

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// keepingRecord returns the record of a task that asks to keep something, mostly for
// less time than the test takes.
func (m *modelTest) keepingRecord() []byte {
	k := store.Keeping{Unique: time.Duration(m.rng.IntN(20_000)) * time.Microsecond, For: time.Duration(m.rng.IntN(20_000)) * time.Microsecond}
	switch m.rng.IntN(4) {
	case 0:
		k.Unique = 0
	case 1:
		k.For = 0
	}
	if m.rng.IntN(2) == 0 {
		k.Most = m.rng.IntN(3)
	}
	repeatsBit := byte(m.rng.IntN(2)) * 8
	b := k.Append([]byte{1, byte(m.rng.IntN(2)), 0, 0, 0, 0, 0, 128 | repeatsBit})
	return b[:len(b)-m.rng.IntN(20)/19] // some are too short
}

// keepRun keeps a finished run in the model, if its task asks for that.
func (m *model) keepRun(t *modelTask, done bool, failures []store.Failure, result []byte) {
	k, _ := t.Keeps()
	unique, history := done && k.Unique > 0, k.For > 0 || k.Most > 0
	if !unique && !history {
		return
	}
	key := store.KeyOf(t.ID)
	headEntry := &modelTask{Entry: store.Entry{Task: store.Task{ID: store.HeadID(key)}, State: store.Past}}
	if old := m.tasks[headEntry.ID]; old != nil && old.At > m.now {
		*headEntry = *old // keepPoisonedRuns needs old unchanged
	}
	m.tasks[headEntry.ID] = headEntry
	headEntry.Handler = t.Handler
	if unique {
		headEntry.Due = m.now.Add(k.Unique)
		headEntry.At = max(headEntry.At, headEntry.Due)
	}
	if !history {
		return
	}
	number, ends := headEntry.Runs, store.Farthest
	headEntry.Runs++
	if k.Most > 0 {
		number = number % k.Most
	}
	if k.For > 0 {
		ends = m.now.Add(k.For)
	}
	headEntry.At = max(headEntry.At, ends)
	id := store.RunID(key, number)
	m.caseCounts["kept run"]++
	if m.tasks[id] != nil {
		m.caseCounts["kept run in place of another"]++
	}
	m.tasks[id] = &modelTask{Entry: store.Entry{
		Task:  store.Task{ID: id, Handler: t.Handler, Record: store.RunRecord(done, m.now, result)},
		State: store.Past, At: ends, Due: t.Due, Attempts: t.Attempts, Crashes: t.Crashes, Failures: failures,
	}}
}

// keepPoisonedRuns keeps runs of one key that became dead letters in the same claim. The store
// may number them in any order, so keepPoisonedRuns tries each order until the model equals
// the store. If no order fits, it returns false, and compareWithStore fails later.
func (m *model) keepPoisonedRuns(key string, tasks []*modelTask) bool {
	tasksBefore := m.tasks
	for i, t := range tasks {
		m.tasks = maps.Clone(tasksBefore)
		m.keepRun(t, false, t.Failures, nil)
		if len(tasks) == 1 {
			return m.hasSameKeptRuns(key)
		}
		if m.keepPoisonedRuns(key, slices.Concat(tasks[:i], tasks[i+1:])) {
			return true
		}
	}
	return false
}

// hasSameKeptRuns reports whether the model and the store have the same kept runs of a key.
func (m *model) hasSameKeptRuns(key string) bool {
	var all []store.Entry
	for _, t := range m.tasks {
		all = append(all, t.Entry)
	}
	f := store.Filter{State: store.Past, Prefix: store.DeadID(key), From: m.now + 1} // others have expired
	return reflect.DeepEqual(m.list(f), expectedList(all, f))
}
