package storetest

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
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
func (m *model) keepRun(t *store.Entry, done bool, failures []store.Failure, result []byte) {
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
	headEntry.Handler, headEntry.Group = t.Handler, t.Group
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
		Task:  store.Task{ID: id, Handler: t.Handler, Group: t.Group, Record: store.RunRecord(done, m.now, result)},
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
		m.keepRun(&t.Entry, false, t.Failures, nil)
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

// withFollowUps returns the record of a task with follow-ups, if the record has a version.
func (m *modelTest) withFollowUps(record []byte) []byte {
	if len(record) < 8 || record[0] != 1 {
		record = []byte{1, 0, 0, 0, 0, 0, 0, 0, 'b'}
	}
	record = slices.Clone(record)
	record[0] = 2
	var f store.FollowUps
	for _, x := range []**store.Task{&f.Success, &f.Failure} {
		if m.rng.IntN(3) > 0 {
			inner := []byte{2, 0, 0, 0, 0, 0, 0, 0, byte(m.rng.IntN(256))}
			*x = &store.Task{Handler: "h" + strconv.Itoa(m.rng.IntN(2)), Record: new(store.FollowUps).Append(inner)}
		}
	}
	record = f.Append(record)
	if m.rng.IntN(20) == 0 {
		record[8+m.rng.IntN(len(record)-8)] = '7' // often damage
	}
	return record
}

// addFollowUp adds the task that follows a run to the model.
func (m *model) addFollowUp(e store.Entry, done bool, text string) {
	f, _, ok := e.FollowUps()
	next, what := f.Failure, "follow-up of a failure"
	if done {
		next, what = f.Success, "follow-up of a success"
	}
	if !ok || next == nil {
		return
	}
	m.caseCounts[what]++
	x, _ := e.FollowUp(store.RunEnd{Done: done, Due: e.Due, Attempts: e.Attempts, Crashes: e.Crashes, Text: text}, e.Token)
	m.check(x.ID == store.KeyOf(e.ID)+"\x000"+strconv.FormatInt(e.Token, 10) && x.Handler == next.Handler, "the follow-up of %+v is %+v", e, x)
	t := new(modelTask)
	t.setPending(x, m.now)
	t.Version = e.Token
	m.tasks[x.ID] = t
}
