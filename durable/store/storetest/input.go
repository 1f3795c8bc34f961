package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A command may have many items, also several for one task. They apply one after the other.
func testBatches(b *storeTest) {
	b.startJudge()
	const tasks = store.MaxBatch - 50
	send := func(op store.Op, n int, w store.When, want map[store.Outcome]int) {
		b.Helper()
		c, got := store.Command{Op: op}, make(map[store.Outcome]int)
		for i := range n {
			x := item(fmt.Sprint(i%tasks), w)
			if op != store.Schedule {
				x.Task = store.Task{}
			}
			c.Items = append(c.Items, x)
		}
		for _, o := range b.sendCommand(c) {
			got[o]++
		}
		equal(b, "outcomes", got, want)
	}
	send(store.Schedule, store.MaxBatch, b.after(10), map[store.Outcome]int{store.Created: tasks, store.Replaced: 50})
	send(store.Reschedule, store.MaxBatch, b.after(0), map[store.Outcome]int{store.Moved: store.MaxBatch})
	r := b.emptyRound()
	for len(r.Reports) < tasks {
		for _, x := range b.claim(store.MaxClaim) {
			r.Reports = append(r.Reports, store.Report{Lease: leaseOf(x), End: store.Failed, Due: x.Due})
		}
	}
	b.sendRound(r)
	equal(b, "dead", b.stats().Dead, tasks)
	send(store.Requeue, 100, b.after(0), map[store.Outcome]int{store.Moved: 100})
	send(store.Purge, 150, store.When{}, map[store.Outcome]int{store.Absent: 100, store.Removed: 50})
	send(store.Cancel, 150, store.When{}, map[store.Outcome]int{store.Removed: 100, store.Absent: 50})
	equal(b, "number of remaining entries", len(b.allEntries()), tasks-150)
}

// Items of the maximum size are stored unchanged.
func testMaximumSizes(b *storeTest) {
	key := strings.Repeat("ü", store.MaxID/2)
	record := bytes.Repeat([]byte{0, 1, 2, 0xff, '\n', '\r'}, store.MaxRecord/6+1)[:store.MaxRecord]
	t := store.Task{ID: key, Handler: strings.Repeat(" h", store.MaxID/2), Schedule: strings.Repeat("\u2028%", store.MaxID/4), Record: record}
	outcomes := b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: key, When: store.At(store.Farthest), Task: t}}})
	equal(b, "outcome", outcomes[0], store.Created)
	equal(b, "at", b.getEntry(key).At, store.Farthest)
	equal(b, "reschedule", b.changeTask(store.Reschedule, key, store.After(store.MaxDelay)), store.Moved)
	equal(b, "reschedule", b.changeTask(store.Reschedule, key, store.At(0)), store.Moved)
	e := b.getEntry(key)
	equal(b, "the task", e.Task, t)
	equal(b, "at", e.At, 0)
	r := b.claimRound(1)
	r.Claim.Handlers, r.Claim.Schedules = []string{t.Handler}, []string{t.Schedule}
	got := b.sendRound(r).Tasks
	b.require(len(got) == 1, "claimed %d tasks", len(got))
	equal(b, "the task", got[0].Task, t)
	b.require(b.report(got[0], store.Failed, store.At(store.Farthest)), "the report was refused")
	equal(b, "requeue", b.changeTask(store.Requeue, store.DeadID(key), store.After(0)), store.Moved)
	equal(b, "the key", store.KeyOf(b.sendRound(r).Tasks[0].ID), key)
	// A task may have no record.
	emptyTask := store.Task{ID: "empty", Handler: "h"}
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "empty", When: store.After(0), Task: emptyTask}}})
	equal(b, "record", len(b.claimOne("empty").Record), 0)
}

func testBadInput(b *storeTest) {
	b.prepareTasks()
	entriesBefore := b.allEntries()
	validItem := item("k", store.After(0))
	withItem := func(f func(x *store.Item)) store.Command {
		x := validItem
		f(&x)
		return store.Command{Op: store.Schedule, Items: []store.Item{validItem, x}}
	}
	setID := func(s string) func(x *store.Item) { return func(x *store.Item) { x.ID, x.Task.ID = s, s } }
	tooManyItems := make([]store.Item, store.MaxBatch+1)
	for i := range tooManyItems {
		tooManyItems[i] = validItem
	}
	for what, c := range map[string]store.Command{
		"no op":               {Items: []store.Item{{ID: "k"}}},
		"op":                  {Op: store.Sync + 1},
		"no items":            {Op: store.Schedule},
		"many items":          {Op: store.Schedule, Items: tooManyItems},
		"pause with items":    {Op: store.Pause, Items: []store.Item{validItem}},
		"no id":               withItem(setID("")),
		"long id":             withItem(setID(strings.Repeat("k", store.MaxID+1))),
		"two ids":             withItem(func(x *store.Item) { x.Task.ID = "other" }),
		"no handler":          withItem(func(x *store.Item) { x.Task.Handler = "" }),
		"long handler":        withItem(func(x *store.Item) { x.Task.Handler = strings.Repeat("h", store.MaxID+1) }),
		"long schedule":       withItem(func(x *store.Item) { x.Task.Schedule = strings.Repeat("h", store.MaxID+1) }),
		"large record":        withItem(func(x *store.Item) { x.Task.Record = make([]byte, store.MaxRecord+1) }),
		"no time":             withItem(func(x *store.Item) { x.When = store.When{} }),
		"negative time":       withItem(func(x *store.Item) { x.When = store.At(-1) }),
		"negative delay":      withItem(func(x *store.Item) { x.When = store.After(-time.Microsecond) }),
		"too late":            withItem(func(x *store.Item) { x.When = store.At(store.Farthest + 1) }),
		"too long":            withItem(func(x *store.Item) { x.When = store.After(store.MaxDelay + time.Microsecond) }),
		"keep":                {Op: store.Schedule, Keep: store.KeepSame + 1, Items: []store.Item{validItem}},
		"cancel with a time":  {Op: store.Cancel, Items: []store.Item{{ID: "pending", When: store.After(0)}}},
		"cancel with keep":    {Op: store.Cancel, Keep: store.KeepAny, Items: []store.Item{{ID: "pending"}}},
		"requeue with a time": {Op: store.Requeue, Items: []store.Item{{ID: "dead"}}},
		"cancel paused":       {Op: store.Cancel, Items: []store.Item{{ID: "pending", Paused: true}}},
		"cancel generation":   {Op: store.Cancel, Items: []store.Item{{ID: "pending", Generation: "123456"}}},
		"short generation":    {Op: store.Reschedule, Items: []store.Item{{ID: "pending", When: store.After(0), Generation: "1"}}},
		"version":             {Op: store.Cancel, Items: []store.Item{{ID: "pending", IfVersion: -1}}},
		"import of a version": {Op: store.Import, Items: []store.Item{{ID: "new", IfVersion: 1, Entry: &store.Entry{Task: task("new"), State: store.Pending}}}},
	} {
		b.requireInvalid(c)
		equal(b, "all entries after: "+what, b.allEntries(), entriesBefore)
	}
	for _, s := range []store.Stamp{{}, {Sender: "s"}, {Number: 1}, {Sender: "s", Number: -1}, {Sender: "s", Number: 1, Until: -1},
		{Sender: strings.Repeat("s", store.MaxID+1), Number: 1}} {
		_, err := b.Store.Change(ctx, 0, s, store.Command{Op: store.Schedule, Items: []store.Item{validItem}})
		b.requireError(err, store.ErrInvalid)
		_, err = b.Store.Do(ctx, 0, s, b.claimRound(1))
		b.requireError(err, store.ErrInvalid)
	}
	for what, f := range map[string]func(r *store.Round){
		"max":        func(r *store.Round) { r.Claim.Max = store.MaxClaim + 1 },
		"minus":      func(r *store.Round) { r.Claim.Max = -1 },
		"not asked":  func(r *store.Round) { r.Claim.Asked = false },
		"lease":      func(r *store.Round) { r.Lease = 0 },
		"long lease": func(r *store.Round) { r.Lease = store.MaxDelay + time.Second },
		"crashes":    func(r *store.Round) { r.MaxCrashes = 0 },
		"rooms":      func(r *store.Round) { r.Claim.Rooms = make([]store.Room, 2) },
		"handler":    func(r *store.Round) { r.Claim.Rooms = []store.Room{{Handler: len(r.Claim.Handlers)}} },
		"spare":      func(r *store.Round) { r.Claim.Spare = r.Claim.Max + 1 },
		"room":       func(r *store.Round) { r.Claim.Rooms = []store.Room{{Most: 2}} },
		"suspects":   func(r *store.Round) { r.Claim.Suspects = r.Claim.Max + 1 },
		"reports":    func(r *store.Round) { r.Reports = make([]store.Report, store.MaxBatch+1) },
		"extensions": func(r *store.Round) { r.Extend = make([]store.Lease, store.MaxBatch+1) },
		"end":        func(r *store.Round) { r.Reports = []store.Report{{End: store.Dropped + 1}} },
		"no end":     func(r *store.Round) { r.Reports = []store.Report{{}} },
		"retry when": func(r *store.Round) { r.Reports = []store.Report{{End: store.Retry}} },
		"next":       func(r *store.Round) { r.Reports = []store.Report{{End: store.Done, Next: store.At(-1)}} },
		"a single run again": func(r *store.Round) {
			r.Reports = []store.Report{{Lease: store.Lease{ID: "k\x001"}, End: store.Done, Next: store.At(1)}}
		},
		"large result": func(r *store.Round) {
			r.Reports = []store.Report{{End: store.Done, Keep: true, Result: make([]byte, store.MaxResult+1)}}
		},
		"due too far": func(r *store.Round) { r.Reports = []store.Report{{End: store.Done, Due: store.Farthest + 1}} },
	} {
		r := b.claimRound(1)
		f(&r)
		_, err := b.Store.Do(ctx, 0, b.stamp(), r)
		b.requireError(err, store.ErrInvalid)
		equal(b, "all entries after: "+what, b.allEntries(), entriesBefore)
	}
	for _, limit := range []int{0, -1, store.MaxPage + 1} {
		_, err := b.Store.List(ctx, 0, store.Filter{}, store.Cursor{}, limit)
		b.requireError(err, store.ErrInvalid)
	}
	_, err := b.Store.List(ctx, 0, store.Filter{State: store.Past + 1}, store.Cursor{}, 1)
	b.requireError(err, store.ErrInvalid)
}

// The store and its caller share no memory: each may change its own bytes afterwards.
func testNoSharedMemory(b *storeTest) {
	x := item("k", store.After(0))
	items := []store.Item{x}
	b.sendCommand(store.Command{Op: store.Schedule, Items: items})
	clear(x.Task.Record)
	items[0] = store.Item{}
	e := b.getEntry("k")
	equal(b, "record", string(e.Record), "record of k")
	clear(e.Record)
	got := b.claimOne("k")
	equal(b, "record", string(got.Record), "record of k")
	clear(got.Record)
	nextItem := item("k", store.After(0))
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{nextItem}})
	clear(nextItem.Task.Record)
	entries := b.allEntries()
	equal(b, "record", string(entries[0].Record), "record of k")
	clear(entries[0].Record)
	b.require(b.report(got, store.Done, store.When{}), "the report was refused")
	equal(b, "record", string(b.claimOne("k").Record), "record of k")
}
