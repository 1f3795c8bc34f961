package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// expectedList returns the entries that match a filter, in the order of the list.
func expectedList(all []store.Entry, f store.Filter) (want []store.Entry) {
	for _, e := range all {
		if matchesFilter(&e, f) {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, func(a, b store.Entry) int {
		if f.Prefix != "" {
			return strings.Compare(a.ID, b.ID)
		}
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.At, b.At), strings.Compare(a.ID, b.ID))
	})
	return want
}

func matchesFilter(e *store.Entry, f store.Filter) bool {
	if e.Due < f.DueFrom || f.DueTo != 0 && e.Due >= f.DueTo {
		return false
	}
	if f.Error != "" {
		n := len(e.Failures)
		if n == 0 || !strings.Contains(e.Failures[n-1].Text, f.Error) {
			return false
		}
	}
	switch {
	case f.Paused && !e.Paused:
		return false
	case f.State != 0 && e.State != f.State, f.Handler != "" && e.Handler != f.Handler, f.Group != "" && e.Group != f.Group, !strings.HasPrefix(e.ID, f.Prefix):
		return false
	}
	return e.At >= f.From && (f.To == 0 || e.At < f.To)
}

// requireLists compares the lists by some filters, with different numbers of entries on a page,
// with what they must have of all.
func (b *storeTest) requireLists(all []store.Entry, limits []int, filters ...store.Filter) {
	b.Helper()
	for _, f := range filters {
		want := expectedList(all, f)
		for _, limit := range limits {
			equal(b, fmt.Sprintf("entries by %+v, %d on a page", f, limit), b.listAll(f, limit), want)
		}
	}
}

func testList(b *storeTest) {
	now := b.now().Add(1000 * b.unit)
	for i := range 60 {
		t := task(fmt.Sprintf("%c%d", 'a'+i%3, i))
		if i%2 == 0 {
			t.Handler = "other"
		}
		at := now + store.Time(i/4) // some at one moment
		if i%5 == 0 {
			at = store.Time(i)
		}
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: t.ID, When: store.At(at), Task: t}}})
	}
	for i, x := range b.claim(100) {
		if i%2 == 0 {
			b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
		}
	}
	entries := b.allEntries()
	equal(b, "entries", len(entries), 60)
	equal(b, "the order of entries", entries, expectedList(entries, store.Filter{}))
	for _, e := range entries {
		equal(b, "the entry from Get", b.getEntry(e.ID), e)
	}
	limits := []int{1, 7, 100}
	if b.isBrief() {
		limits = limits[1:]
	}
	b.requireLists(entries, limits, []store.Filter{
		{}, {State: store.Pending}, {State: store.Running}, {State: store.Dead}, {Handler: "h"}, {Handler: "none"}, {Prefix: "a"},
		{Prefix: "b1", Handler: "other"}, {From: now}, {To: now}, {From: now + 3, To: now + 7}, {State: store.Dead, Handler: "h", To: 1},
		{DueFrom: now + 2}, {DueTo: now + 5}, {State: store.Pending, Handler: "h", DueFrom: now + 1, DueTo: now + 4},
		{Error: "ex"}, {Error: "EX"}, {Error: "text", Handler: "h"}, {Error: "text", Prefix: "a"}, {Prefix: "a", State: store.Dead, To: now},
	}...)
	// The list is complete even if listed entries are removed meanwhile.
	var seenIDs []string
	for c := (store.Cursor{}); ; {
		p, err := b.Store.List(ctx, 0, store.Filter{State: store.Pending}, c, 7)
		b.requireNoError(err)
		for _, e := range p.Entries {
			seenIDs = append(seenIDs, e.ID)
			equal(b, "cancel", b.changeTask(store.Cancel, e.ID, store.When{}), store.Removed)
		}
		if c = p.Next; c == (store.Cursor{}) {
			break
		}
	}
	equal(b, "seen", len(seenIDs), len(slices.DeleteFunc(slices.Clone(entries), func(e store.Entry) bool { return e.State != store.Pending })))
}

// Finished runs are listed over all keys, the latest first, and without head entries.
func testListOfRuns(b *storeTest) {
	var items []store.Item
	now := b.now()
	k := store.Keeping{For: 1000 * time.Hour}
	record := k.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128})
	for i := range 12 {
		t := store.Task{ID: fmt.Sprint("key", i%5), Handler: "h", Record: record}
		if i%3 == 0 {
			t.Handler = "other"
		}
		ended := now - store.Time(100-i/2) // two runs each end at the same time
		e := &store.Entry{Task: t, State: store.Past, At: now.Add(time.Hour), Due: now - store.Time(1000+i), Attempts: 1}
		e.ID, e.Record = store.RunID(t.ID, i), store.RunRecord(i%4 != 0, ended, []byte("result"))
		if i%4 == 0 {
			e.Failures = []store.Failure{{Attempt: 1, Time: now - 500, Text: "error text"}}
		}
		items = append(items, store.Item{ID: e.ID, Entry: e})
		if head := store.HeadID(t.ID); i < 5 {
			items = append(items, store.Item{ID: head, Entry: &store.Entry{Task: store.Task{ID: head, Handler: t.Handler}, State: store.Past, At: now.Add(time.Hour), Runs: 1}})
		}
	}
	for _, o := range b.sendCommand(store.Command{Op: store.Import, Items: items}) {
		equal(b, "import", o, store.Created)
	}
	b.prepareTasks()
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: b.after(0), Task: store.Task{ID: "k", Handler: "kept", Record: record}}}})
	r := b.claimRound(1)
	r.Claim.Handlers = []string{"kept"}
	x := b.sendRound(r).Tasks[0]
	b.reportKept(x, store.Done, store.When{})

	var all []store.Entry
	for _, e := range b.allEntries() {
		if _, _, _, ok := store.ParseRun(e.Record); ok && e.State == store.Past {
			all = append(all, e)
		}
	}
	equal(b, "runs", len(all), 13)
	ended := func(e store.Entry) store.Time {
		_, at, _, _ := store.ParseRun(e.Record)
		return at
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(ended(b), ended(a)), strings.Compare(b.ID, a.ID))
	})
	for _, f := range []store.Filter{
		{}, {State: store.Past}, {Handler: "other"}, {Error: "error"}, {Prefix: "key1"}, {From: now - 98}, {To: now - 97}, {From: now - 98, To: now - 96, Handler: "h"},
		{DueFrom: now - 1005}, {DueTo: now - 1003, Error: "text"}, {Handler: "none"},
	} {
		var want []store.Entry
		for _, e := range all {
			at := e.At
			e.At = ended(e)
			if matchesFilter(&e, f) {
				e.At = at
				want = append(want, e)
			}
		}
		f.Runs = true
		for _, limit := range []int{1, 5, 100} {
			equal(b, fmt.Sprintf("%+v, %d on a page", f, limit), b.listAll(f, limit), want)
		}
	}
	_, err := b.Store.List(ctx, 0, store.Filter{Runs: true, State: store.Dead}, store.Cursor{}, 1)
	b.requireError(err, store.ErrInvalid)
}

// A list of pending tasks is in order, however many handlers they have.
func testListOfManyHandlers(b *storeTest) {
	now := b.now()
	var items []store.Item
	for i := range 900 { // some handlers have few tasks and others many, also at the same times
		t := store.Task{ID: fmt.Sprint("k", i), Handler: fmt.Sprint("h", min(i%300, i*7919%100)), Record: []byte("r")}
		at := now + 1000 + store.Time(i*i%211)
		if i%50 == 0 {
			at = now + 1000_000
		}
		items = append(items, store.Item{ID: t.ID, When: store.At(at), Task: t})
	}
	b.scheduleItems(items)
	all := b.allEntries()
	equal(b, "entries", len(all), len(items))
	limits := []int{3, 100, 1000}
	if b.isBrief() {
		limits = limits[1:]
	} else if b.Steps > 0 {
		limits[0] = 17
	}
	b.requireLists(all, limits, []store.Filter{
		{}, {State: store.Pending, From: now + 1100}, {To: now + 1150, Handler: "h7"}, {DueFrom: now + 1050, DueTo: now + 1052}, {Handler: "h1"}, {State: store.Pending, Handler: "none"},
	}...)
}

// A prefix has no wildcards.
func testPrefixes(b *storeTest) {
	ids := []string{"a*1", "a*2", "ab", "a?1", "a[b]", "a[c", `a\1`, `a\*`, "A*1", "a", "\U0010ffff\U0010ffff1", "\U0010ffff", "\ufffd1", "ä1", "a%1", "a_1", "a'1"}
	for i, id := range ids {
		b.schedule(id, b.after(1000-i))
	}
	all := b.allEntries()
	for _, prefix := range []string{"a", "a*", "a?", "a[", "a[b", `a\`, `a\*`, "\U0010ffff", "\U0010ffff\U0010ffff", "ä", "a%", "a_", "a'", "b"} {
		b.requireLists(all, []int{1, 100}, store.Filter{Prefix: prefix})
	}
}

func testRepair(b *storeTest) {
	b.prepareTasks()
	entriesBefore := b.allEntries()
	r, err := b.Store.Repair(ctx, 0)
	b.requireNoError(err)
	b.require(r.Looked >= int64(len(entriesBefore)), "Repair has checked %d of %d", r.Looked, len(entriesBefore))
	r.Looked = 0
	equal(b, "repairs", r, store.Repair{})
	equal(b, "all entries", b.allEntries(), entriesBefore)
	_, err = b.Store.Check(ctx)
	b.requireNoError(err)
}
