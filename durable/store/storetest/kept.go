package storetest

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Purge removes a finished run that is kept. With the only run of a key, the key's head entry goes
// too, unless it protects the key.
func testPurgedRuns(b *storeTest) {
	finish := func(id string, k store.Keeping) {
		record := k.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128})
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: b.after(0), Task: store.Task{ID: id, Handler: "h", Record: record}}}})
		x := b.claimOne(id)
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(x), End: store.Done, Due: x.Due, Keep: true}}
		b.sendRound(r)
	}
	finish("one", store.Keeping{Most: 3})
	finish("two", store.Keeping{Most: 3})
	finish("two", store.Keeping{Most: 3})
	finish("unique", store.Keeping{Most: 3, Unique: time.Hour})
	equal(b, "entries", b.stats().Past, 7) // with three heads
	for _, x := range []struct {
		id   string
		want store.Outcome
		left int64
	}{
		{"one", store.Absent, 7}, {store.RunID("one", 1), store.Absent, 7}, {store.RunID("one", 0), store.Removed, 5}, {store.RunID("one", 0), store.Absent, 5},
		{store.RunID("two", 1), store.Removed, 4}, {store.RunID("two", 0), store.Removed, 3}, {store.RunID("unique", 0), store.Removed, 2},
	} {
		equal(b, "purge", b.changeTask(store.Purge, x.id, store.When{}), x.want)
		equal(b, "entries", b.stats().Past, x.left)
	}
	equal(b, "runs", len(b.listAll(store.Filter{Runs: true}, 10)), 0)
	finish("two", store.Keeping{Most: 3})
	equal(b, "the next run", b.listAll(store.Filter{Runs: true}, 10)[0].ID, store.RunID("two", 2))
	unique := store.Keeping{Unique: time.Hour}
	task := store.Task{ID: "unique", Handler: "h", Record: unique.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128})}
	equal(b, "the key is still unique", b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "unique", When: b.after(0), Task: task}}})[0], store.Kept)
}

// A failed run of a repeating task is kept as the run's own content asks, not as new content that
// the task got during the attempt.
func testRunKeptAsItAsks(b *storeTest) {
	schedule := func(k store.Keeping) store.Outcome {
		task := store.Task{ID: "id", Handler: "h", Record: k.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128 | 8})}
		return b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "id", When: store.At(b.now()), Next: true, Task: task}}})[0]
	}
	schedule(store.Keeping{Most: 1})
	x := b.claimOne("id")
	equal(b, "the change", schedule(store.Keeping{Most: 3, For: time.Hour}), store.Following)
	b.reportKept(x, store.Failed, b.after(1))
	runs := b.listAll(store.Filter{Runs: true}, 10)
	equal(b, "runs", len(runs), 1)
	equal(b, "the run is kept until", runs[0].At, store.Farthest)
	b.sleep(1)
	b.reportKept(b.claimOne("id"), store.Failed, b.after(1))
	runs = b.listAll(store.Filter{Runs: true}, 10)
	equal(b, "runs", len(runs), 2)
	b.require(runs[0].At < store.Farthest, "the next run is kept as the old content asks")
}

// Finished runs that have expired are not listed or counted, and are deleted soon: a store has
// about as many entries as runs were kept in the time for which it keeps them.
func testExpiry(b *storeTest) {
	const keptSteps, steps = 10, 40
	perStep := 100 // as many as a claim
	if b.isBrief() {
		perStep = 30
	}
	k := store.Keeping{Unique: keptSteps / 2 * b.unit, For: keptSteps * b.unit}
	record := k.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128})
	stored := func() int64 { // some stores count the rows of several tables
		r, err := b.Store.Repair(ctx, 0)
		b.requireNoError(err)
		return r.Looked
	}
	newItem := func(id string) store.Item {
		return store.Item{ID: id, When: b.after(0), Task: store.Task{ID: id, Handler: "h", Record: record}}
	}
	reports := func(claimed []store.Claimed) (all []store.Report) {
		for _, x := range claimed {
			all = append(all, store.Report{Lease: leaseOf(x), End: store.Done, Due: x.Due, Keep: true})
		}
		return all
	}
	var claimed []store.Claimed
	var full int64 // stored in the middle
	for step := range steps {
		var items []store.Item
		for i := range perStep {
			items = append(items, newItem(fmt.Sprint("key", step, "-", i)))
		}
		b.scheduleItems(items)
		r := b.claimRound(perStep)
		r.Reports = reports(claimed)
		claimed = b.sendRound(r).Tasks
		equal(b, "claimed", len(claimed), perStep)
		b.sleep(1)
		if step == 2*keptSteps {
			full = stored()
		}
	}
	if n := stored(); n > full*5/4 {
		b.Fatalf("%d entries are stored after %d steps, and %d after %d: the runs of %d steps are kept", n, steps, full, 2*keptSteps, keptSteps)
	}
	b.require(b.stats().Past > 0, "no run is kept")
	r := b.emptyRound()
	r.Reports = reports(claimed)
	b.sendRound(r)
	b.sleep(keptSteps + 1)
	b.require(stored() > 0, "all is deleted before a claim")
	equal(b, "past entries, after all have expired", b.stats().Past, 0)
	for _, f := range []store.Filter{{}, {State: store.Past}, {Prefix: "key"}, {Runs: true}, {Handler: "h"}} {
		equal(b, fmt.Sprintf("entries by %+v, after all have expired", f), len(b.listAll(f, 100)), 0)
	}
	b.requireAbsent(store.RunID("key39-0", 0))
	equal(b, "purge of a run that has expired", b.changeTask(store.Purge, store.RunID("key39-0", 0), store.When{}), store.Absent)
	// A worker without tasks deletes them.
	for i, left := 0, stored(); left > 0; i++ {
		a := b.sendRound(b.claimRound(1))
		if i%5 == 4 || a.Next < 0 { // not each time: counting all is slow
			left = stored()
		}
		b.require(i < 100 && (a.Next >= 0 || left == 0), "after %d claims, %d entries are left, and Next is %v", i+1, left, a.Next)
		if next := min(a.Next, 100*time.Millisecond); b.Advance != nil {
			b.Advance(max(0, next))
		} else {
			time.Sleep(next)
		}
	}
	// A key whose entries have expired, but are not deleted, begins again.
	for range 2 {
		b.scheduleItems([]store.Item{newItem("key")})
		b.reportKept(b.claimOne("key"), store.Done, store.When{})
		equal(b, "the kept run", b.listAll(store.Filter{Runs: true}, 10)[0].ID, store.RunID("key", 0))
		b.sleep(keptSteps + 1)
	}
}
