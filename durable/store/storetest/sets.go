package storetest

import (
	"slices"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// A Sync makes the tasks of a set those of the command, unless the set has a higher version.
func testSets(b *storeTest) {
	later, due := b.now().Add(1000*b.unit), b.now()-9
	item := func(id string, body byte, at store.Time, anew bool) store.Item {
		return store.Item{ID: id, When: store.At(at), Task: periodicTask(id, 1, body), Next: true, Anew: anew}
	}
	sync := func(set string, version int64, items ...store.Item) []store.Outcome {
		return b.sendCommand(store.Command{Op: store.Sync, Items: append([]store.Item{{ID: set, Version: version}}, items...)})
	}
	outcomes := func(what string, got []store.Outcome, want ...store.Outcome) {
		equal(b, what, got, want)
	}
	outcomes("a new set", sync("s", 5, item("a", 1, later, false), item("b", 1, later, false)), store.Created, store.Created, store.Created)
	outcomes("another set", sync("other", 9, item("c", 1, later, false)), store.Created, store.Created)
	outcomes("no change", sync("s", 5, item("b", 1, later, false), item("a", 1, later, false)), store.Replaced, store.Kept, store.Kept)
	b.schedule("one", store.At(later))

	moved := later.Add(b.unit)
	outcomes("a change", sync("s", 7, item("a", 2, moved, false), item("d", 1, later, false)), store.Replaced, store.Replaced, store.Created)
	b.requireAbsent("b")
	equal(b, "the period keeps its phase", b.getEntry("a").At, later)
	equal(b, "content", b.getEntry("a").Task, periodicTask("a", 1, 2))
	outcomes("an older version", sync("s", 6, item("a", 1, later, false), item("b", 1, later, false)), store.Kept, store.Kept, store.Kept)
	b.requireAbsent("b")
	b.getEntry("d")

	outcomes("rules that changed", sync("s", 7, item("a", 2, moved, true), item("d", 1, later, true)), store.Replaced, store.Moved, store.Kept)
	e := b.getEntry("a")
	equal(b, "the run has moved", e, store.Entry{Task: periodicTask("a", 1, 2), State: store.Pending, At: moved, Due: moved})

	equal(b, "due", b.sendCommand(store.Command{Op: store.Reschedule, Items: []store.Item{{ID: "a", When: store.At(due)}}})[0], store.Moved)
	outcomes("a run that is due stays", sync("s", 7, item("a", 2, moved, true), item("d", 1, later, true)), store.Replaced, store.Kept, store.Kept)
	x := b.claimOne("a")
	equal(b, "the run's due time", x.Due, due)
	outcomes("a running task stays", sync("s", 7, item("a", 2, moved, true)), store.Replaced, store.Kept)
	b.requireAbsent("d")
	equal(b, "one", b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "c", When: store.At(later), Task: task("c")}}})[0], store.Replaced)
	outcomes("no task any more", sync("s", 8), store.Replaced)
	equal(b, "the running task is told to stop", b.getEntry("a").Stopping, true)
	outcomes("no task any more", sync("other", 9), store.Replaced)
	b.getEntry("c") // it does not repeat any more
	grouped := item("g", 1, due, false)
	grouped.Task.Group = "group"
	outcomes("a task of a group", sync("other", 9, grouped), store.Replaced, store.Created)
	equal(b, "it runs", b.claimOne("g").Due, due)
	outcomes("no task any more", sync("other", 9), store.Replaced)
	b.getEntry("one")
	b.report(x, store.Done, store.At(later))
	b.requireAbsent("a")

	if b.Reopen != nil {
		b.reopen()
	}
	outcomes("a version that is remembered", sync("s", 7, item("a", 1, later, false)), store.Kept, store.Kept)
	equal(b, "paused", b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "p", When: store.At(store.Farthest), Task: periodicTask("p", 1, 1)}}})[0], store.Created)
	outcomes("a paused task", sync("s", 8, item("p", 1, later, true)), store.Replaced, store.Kept)
	equal(b, "it stays paused", b.getEntry("p").At, store.Farthest)

	for _, c := range []store.Command{
		{Op: store.Sync},
		{Op: store.Sync, Items: []store.Item{{ID: "s", Version: -1}}},
		{Op: store.Sync, Items: []store.Item{{ID: "s\x00", Version: 1}}},
		{Op: store.Sync, Keep: store.KeepSame, Items: []store.Item{{ID: "s", Version: 9}}},
		{Op: store.Sync, Items: []store.Item{{ID: "s", Version: 9}, {ID: "one", When: store.At(later), Task: task("one")}}},
		{Op: store.Sync, Items: make([]store.Item, 2+store.MaxSet)},
	} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), c)
		b.requireError(err, store.ErrInvalid)
	}
}

// A modelSet is what the latest Sync of a set said.
type modelSet struct {
	version int64
	keys    []string
}

// sync applies Sync to the model and returns the expected outcomes.
func (m *model) sync(items []store.Item) []store.Outcome {
	name, version := items[0].ID, items[0].Version
	old, exists := m.sets[name]
	if exists && version < old.version {
		m.caseCounts["an older set"]++
		return slices.Repeat([]store.Outcome{store.Kept}, len(items))
	}
	outcomes, set := []store.Outcome{store.Created}, modelSet{version: version}
	if exists {
		outcomes[0] = store.Replaced
	}
	for _, x := range items[1:] {
		set.keys = append(set.keys, x.ID)
		o := m.changeItem(&store.Command{Op: store.Schedule, Keep: store.KeepSame}, x)
		at := x.When.From(m.now)
		if t := m.tasks[x.ID]; o == store.Kept && x.Anew && t.State == store.Pending && t.At != at && t.At != store.Farthest && !m.hasBegun(t) {
			m.caseCounts["a run of a set moves"]++
			t.At, t.Due, o = at, at, store.Moved
			m.touch(t)
		}
		outcomes = append(outcomes, o)
	}
	for _, id := range old.keys {
		if t := m.tasks[id]; !slices.Contains(set.keys, id) && t != nil && t.Repeats() {
			m.caseCounts["a set loses a task"]++
			m.changeItem(&store.Command{Op: store.Cancel}, store.Item{ID: id})
		}
	}
	m.sets[name] = set
	return outcomes
}

// syncRandomSet syncs a set of some random repeating tasks.
func (m *modelTest) syncRandomSet() {
	items := []store.Item{{ID: []string{"s0", "s1"}[m.rng.IntN(2)], Version: int64(1 + m.rng.IntN(3))}}
	for _, i := range m.rng.Perm(12)[:m.rng.IntN(6)] {
		id := "k" + strconv.Itoa(i)
		x := store.Item{ID: id, Next: true, Anew: m.rng.IntN(2) == 0, When: store.At(m.randomWhen().From(m.model.now))}
		x.Task = store.Task{ID: id, Handler: "h0", Record: m.repeatingRecord()}
		if t := m.tasks[id]; t != nil && t.Repeats() && m.rng.IntN(4) > 0 {
			if k, _ := t.Keeps(); k.Unique == 0 {
				x.Task = t.Task
			}
		}
		items = append(items, x)
	}
	m.sendAndApply(store.Command{Op: store.Sync, Items: items})
}
