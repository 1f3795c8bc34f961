package storetest

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// groupTasks returns items for n tasks of a group of the handler a, each due 1 µs after the
// one before.
func groupTasks(group string, n int, at store.Time) (items []store.Item) {
	for i := range n {
		t := store.Task{ID: fmt.Sprint(group, i), Handler: "a", Group: group}
		items = append(items, store.Item{ID: t.ID, Task: t, When: store.At(at + store.Time(i))})
	}
	return items
}

func (b *storeTest) scheduleItems(items []store.Item) {
	b.Helper()
	b.sendCommand(store.Command{Op: store.Schedule, Items: items})
}

// All workers together run at most as many tasks of a group as its limit allows. Other
// groups, and tasks without a group, are not delayed. A task counts until its attempt ends,
// for any reason.
func testGroupConcurrency(b *storeTest) {
	old := b.now() - 1000
	b.scheduleItems(groupTasks("x", 14, old))
	b.scheduleItems(groupTasks("y", 3, old+100))
	b.scheduleMany("a", 2, old+200)
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{GroupConcurrency: 2}), store.Created)
	ids, one := b.claimAs("one", 1, "a")
	equal(b, "claimed", ids, []string{"x0"})
	ids, two := b.claimAs("two", 10, "a")
	equal(b, "claimed", ids, []string{"x1", "y0", "y1", "a0", "a1"})
	b.require(two.Next != 0 && two.Limited, "the answer is %+v", two)
	ids, a := b.claimAs("three", 10, "a")
	equal(b, "claimed at the limit", len(ids), 0)
	b.require(a.Next != 0, "Next is 0 at the limit")
	st := b.stats()
	equal(b, "pending and overdue", []int64{st.Pending, st.Overdue, st.Running}, []int64{13, 13, 6})
	equal(b, "limits", st.Limits, map[string]store.Limit{"a": {GroupConcurrency: 2}})

	claimAfter := func(what string, want ...string) store.Claimed {
		b.Helper()
		ids, a := b.claimAs("one", 10, "a")
		equal(b, "claimed after "+what, ids, want)
		return a.Tasks[0]
	}
	r := b.claimRound(10)
	r.Claim.Handlers = []string{"a"}
	r.Reports = []store.Report{{Lease: leaseOf(one.Tasks[0]), End: store.Done, Due: old}}
	got := b.sendRound(r).Tasks
	b.require(len(got) == 1 && got[0].ID == "x2", "claimed %+v with a report", got)
	b.require(b.report(two.Tasks[0], store.Failed, store.When{}), "the report was refused")
	x := claimAfter("a failure", "x3")
	b.require(b.report(x, store.HandBack, b.after(1000)), "the report was refused")
	x = claimAfter("a task that was handed back", "x4")
	b.require(b.report(x, store.Retry, b.after(1000)), "the report was refused")
	x = claimAfter("a retry", "x5")
	equal(b, "cancel", b.changeTask(store.Cancel, x.ID, store.When{}), store.Stopping)
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	x = claimAfter("a cancel", "x6")
	equal(b, "schedule", b.changeTask(store.Schedule, x.ID, b.after(1000)), store.Following) // without a group
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	x = claimAfter("a task of no group with its key", "x7")
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	b.require(!b.report(x, store.Done, store.When{}), "a second report was accepted")

	// The first waiting tasks are cancelled, moved and moved to another group.
	equal(b, "cancel", b.changeTask(store.Cancel, "x8", store.When{}), store.Removed)
	equal(b, "reschedule", b.changeTask(store.Reschedule, "x9", b.after(1000)), store.Moved)
	moved := groupTasks("y", 1, old)
	moved[0].ID, moved[0].Task.ID = "x10", "x10"
	b.scheduleItems(moved)
	b.scheduleItems(groupTasks("x", 1, old-1)) // x0, earlier than all others
	claimAfter("changes", "x0")
	b.require(b.report(two.Tasks[1], store.Done, store.When{}), "the report was refused")
	claimAfter("the move", "x10")
	if b.Reopen != nil {
		b.reopen()
	}
	ids, _ = b.claimAs("one", 10, "a")
	equal(b, "claimed at the limit", len(ids), 0)
	b.sleep(leaseUnits + 1)
	ids, _ = b.claimAs("one", 10, "a")
	count := map[string]int{}
	for _, id := range ids {
		count[b.getEntry(id).Group]++
	}
	equal(b, "claimed after the leases", count, map[string]int{"x": 2, "y": 2, "": 2})
}

// A group's tasks are claimed no faster than its rate allows, and Next is when the next one
// may be claimed. Limits of the handler and of its groups apply together.
func testGroupRate(b *storeTest) {
	interval := 10 * b.unit
	l := store.Limit{GroupRate: float64(time.Second) / float64(interval)}
	limit := l.OfGroup()
	_, burst := limit.Pace()
	n := int(burst)
	b.setHandlerLimit("a", l)
	b.scheduleItems(groupTasks("x", n+3, b.now()-1000))
	b.scheduleItems(groupTasks("y", n+1, b.now()-500))
	ids, a := b.claimAs("one", store.MaxClaim, "a")
	for i := 0; a.Next == 0; i++ { // see store.MaxOfGroup
		b.require(i < 10, "Next stays 0")
		var more []string
		more, a = b.claimAs("one", store.MaxClaim, "a")
		ids = append(ids, more...)
	}
	equal(b, "claimed at once", len(ids), 2*n)
	b.require(a.Next > 0 && a.Next <= interval && !a.Limited, "the answer is %+v", a)
	ids, a = b.claimAs("one", 10, "a")
	b.require(len(ids) == 0 && a.Next > 0 && a.Next <= interval, "claimed %v, and Next is %v", ids, a.Next)
	b.setHandlerLimit("a", store.Limit{GroupRate: l.GroupRate, Concurrency: 2*n + 1})
	b.sleep(int(interval / b.unit))
	ids, a = b.claimAs("one", 10, "a")
	equal(b, "claimed at the handler's limit", ids, []string{fmt.Sprint("x", n)})
	b.require(a.Limited, "the handler's limit was not met")
	b.setHandlerLimit("a", l)
	ids, _ = b.claimAs("one", 10, "a")
	equal(b, "claimed without the handler's limit", ids, []string{fmt.Sprint("y", n)})
}

// One claim gets at most MaxOfGroup tasks of a group, and others that are due later.
func testGroupShare(b *storeTest) {
	old := b.now() - 1000
	b.scheduleItems(groupTasks("x", 5*store.MaxOfGroup/2, old))
	b.scheduleMany("a", 2, old+200)
	want := []string{"a0", "a1"}
	for i := range store.MaxOfGroup {
		want = append(want, fmt.Sprint("x", i))
	}
	ids, a := b.claimAs("one", store.MaxClaim, "a")
	equal(b, "claimed", fmt.Sprint(ids), fmt.Sprint(append(want[2:], want[:2]...)))
	equal(b, "Next", a.Next, 0)
	ids, a = b.claimAs("one", store.MaxClaim, "a")
	b.require(len(ids) == store.MaxOfGroup && a.Next == 0, "claimed %v, and Next is %v", ids, a.Next)
	ids, a = b.claimAs("one", store.MaxClaim, "a")
	b.require(len(ids) == store.MaxOfGroup/2 && a.Next != 0, "claimed %v, and Next is %v", ids, a.Next)
}

// Tasks of a group with a schedule that a worker lacks do not delay its others.
func testGroupSchedules(b *storeTest) {
	old := b.now() - 1000
	items := groupTasks("x", 4, old)
	items[0].Task.Schedule, items[2].Task.Schedule = "s", "s"
	b.scheduleItems(items)
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 1})
	ids, a := b.claimAs("one", 10, "a")
	equal(b, "claimed", ids, []string{"x1"})
	r := b.claimRound(10)
	r.Claim.Handlers, r.Claim.Schedules = []string{"a"}, []string{"s"}
	claimBoth := func(want ...string) store.Answer {
		b.Helper()
		a := b.sendRound(r)
		var ids []string
		for _, x := range a.Tasks {
			ids = append(ids, x.ID)
		}
		equal(b, "claimed", ids, want)
		return a
	}
	claimBoth()
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	a = claimBoth("x0")
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	a = claimBoth("x2")
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	claimBoth("x3")
}

// A new limit counts the tasks that already run. A removed limit has no effect.
func testGroupLimitWhileRunning(b *storeTest) {
	b.scheduleItems(groupTasks("x", 12, b.now()-1000))
	_, first := b.claimAs("one", 4, "a")
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 3})
	requireClaimed := func(want int) {
		b.Helper()
		got := 0
		for {
			ids, a := b.claimAs("one", 10, "a")
			got += len(ids)
			if a.Next != 0 {
				break
			}
		}
		equal(b, "claimed", got, want)
	}
	requireClaimed(0)
	b.require(b.report(first.Tasks[0], store.Done, store.When{}), "the report was refused")
	requireClaimed(0)
	b.require(b.report(first.Tasks[1], store.Done, store.When{}), "the report was refused")
	requireClaimed(1)
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 5})
	requireClaimed(2)
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 6, GroupRate: store.MaxRate})
	if b.Reopen != nil {
		b.reopen()
	}
	requireClaimed(1)
	b.setHandlerLimit("a", store.Limit{Concurrency: 8})
	requireClaimed(2)
	b.setHandlerLimit("a", store.Limit{})
	requireClaimed(2)
	_, err := b.Store.Repair(ctx, 0)
	b.requireNoError(err)
	for _, l := range []store.Limit{{GroupConcurrency: -1}, {GroupRate: -1}, {GroupRate: 1e-11}} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.SetLimit, Items: []store.Item{{ID: "a", Limit: &l}}})
		b.requireError(err, store.ErrInvalid)
	}
}

// A sleeping worker is woken whenever a group may run another task.
func testGroupWakes(b *storeTest) {
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 {
		b.Skip("workers of this store also claim from time to time: a wake-up may come late")
	}
	s, end := b.startSleeper("sleeper", "a")
	defer end()
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 1})
	b.scheduleItems(groupTasks("x", 6, b.now()-1000))
	_, a := b.claimAs("other", 1, "a")
	waitForClaims("nothing", 0, s)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	waitForClaims("after the report of the other worker", 1, s)
	b.scheduleItems(groupTasks("y", 2, b.now()-500))
	waitForClaims("another group", 2, s)
	b.setHandlerLimit("a", store.Limit{GroupConcurrency: 2})
	waitForClaims("after the limit was raised", 4, s)
	b.setHandlerLimit("a", store.Limit{GroupRate: 1})
	waitForClaims("the rate", 5, s)
	interval := int(time.Second / b.unit)
	b.sleep(interval)
	waitForClaims("the rate again", 6, s)
	b.setHandlerLimit("a", store.Limit{})
	waitForClaims("after the limit was removed", 7, s)
}

// A group is part of a task: it stays in dead letters, requeued and kept runs and imports, and
// lists select it.
func testGroupEntries(b *storeTest) {
	now := b.now()
	items := groupTasks("x", 3, now-1000)
	keeping := store.Keeping{Most: 3}
	for i := range items {
		items[i].Task.Record = append(keeping.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128 | 8}), 1)
	}
	b.scheduleItems(items)
	b.scheduleMany("a", 3, now-500)
	_, a := b.claimAs("one", 2, "a")
	for i, end := range []store.End{store.Failed, store.Done} {
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(a.Tasks[i]), End: end, Next: b.after(1000), Due: a.Tasks[i].Due, Keep: true}}
		b.sendRound(r)
	}
	for _, id := range []string{"x0", store.DeadID("x0"), store.RunID("x0", 0), "x1", store.RunID("x1", 0), store.HeadID("x1"), "x2"} {
		equal(b, "group of "+id, b.getEntry(id).Group, "x")
	}
	all := b.allEntries()
	for _, f := range []store.Filter{{Group: "x"}, {Group: "x", State: store.Pending}, {Group: "x", Prefix: "x1"}, {Group: "x", State: store.Past}, {Group: "none"}, {Group: "x", Handler: "a", To: now}} {
		equal(b, fmt.Sprintf("%+v", f), b.listAll(f, 2), expectedList(all, f))
	}
	equal(b, "requeue", b.changeTask(store.Requeue, store.DeadID("x0"), b.after(0)), store.Moved)
	equal(b, "group of a requeued run", len(b.listAll(store.Filter{Group: "x", State: store.Pending, Prefix: "x0\x00"}, 10)), 1)
	e := b.getEntry("x2")
	e.ID, e.Group = "new", "imported"
	next := e.Task
	next.Group = "next"
	e.Following, e.Next, e.NextTask = true, now.Add(1000*b.unit), &next
	b.sendCommand(store.Command{Op: store.Import, Items: []store.Item{{ID: "new", Entry: &e}}})
	got := b.getEntry("new")
	b.require(got.Group == "next" && got.Following, "imported %+v", got)

	// The same content in another group is a change.
	x := groupTasks("x", 3, now+1000)[2]
	x.Task.Group = "z"
	c := store.Command{Op: store.Schedule, Keep: store.KeepSame, Items: []store.Item{x}}
	equal(b, "outcome", b.sendCommand(c)[0], store.Replaced)
	equal(b, "outcome", b.sendCommand(c)[0], store.Kept)
	equal(b, "group", b.getEntry("x2").Group, "z")
	x.Task.Group = "a\x00b"
	_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.Schedule, Items: []store.Item{x}})
	b.requireError(err, store.ErrInvalid)
}
