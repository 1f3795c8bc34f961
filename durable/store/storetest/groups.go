package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// setHandlerLimit sets a handler's limit.
func (b *storeTest) setHandlerLimit(handler string, l store.Limit) store.Outcome {
	b.Helper()
	return b.sendCommand(store.Command{Op: store.SetLimit, Items: []store.Item{{ID: handler, Limit: &l}}})[0]
}

// claimAs sends a claim for tasks of the handlers, as the worker with this name.
func (b *storeTest) claimAs(worker string, n int, handlers ...string) (ids []string, a store.Answer) {
	b.Helper()
	r := b.claimRound(n)
	r.Claim.Handlers = handlers
	s := b.stamp()
	s.Sender = worker
	a, err := b.do(s, r)
	b.requireNoError(err)
	return idsOf(a.Tasks), a
}

func idsOf(tasks []store.Claimed) (ids []string) {
	for _, x := range tasks {
		ids = append(ids, x.ID)
	}
	return ids
}

// limitedTasks returns items for n tasks of a handler and a group, each due 1 µs after the one
// before. Their ids are the prefix and a number.
func limitedTasks(prefix, handler, group string, n int, first store.Time) (items []store.Item) {
	for i := range n {
		t := store.Task{ID: fmt.Sprint(prefix, i), Handler: handler, Group: group}
		items = append(items, store.Item{ID: t.ID, Task: t, When: store.At(first + store.Time(i))})
	}
	return items
}

func (b *storeTest) scheduleItems(items []store.Item) {
	b.Helper()
	for chunk := range slices.Chunk(items, store.MaxBatch) {
		for i, o := range b.sendCommand(store.Command{Op: store.Schedule, Items: chunk}) {
			b.require(o != store.Kept, "schedule %s: the outcome is %v", chunk[i].ID, o)
		}
	}
}

func (b *storeTest) scheduleTasks(prefix, handler, group string, n int, first store.Time) {
	b.Helper()
	b.scheduleItems(limitedTasks(prefix, handler, group, n, first))
}

// A limitTest tests limits: of handlers, or of their groups.
type limitTest struct {
	*storeTest
	ofGroups bool
}

func ofHandlers(test func(b *limitTest)) func(*storeTest) {
	return func(b *storeTest) { test(&limitTest{b, false}) }
}

func ofGroups(test func(b *limitTest)) func(*storeTest) {
	return func(b *storeTest) { test(&limitTest{b, true}) }
}

// schedule schedules n tasks of a handler under one limit. Their ids are the handler's name and
// a number.
func (b *limitTest) schedule(handler string, n int, first store.Time) {
	b.Helper()
	group := ""
	if b.ofGroups {
		group = "x"
	}
	b.scheduleTasks(handler, handler, group, n, first)
}

// limit sets the limit of a handler, or of its groups.
func (b *limitTest) limit(handler string, concurrency int, rate float64) store.Outcome {
	b.Helper()
	l := store.Limit{Concurrency: concurrency, Rate: rate}
	if b.ofGroups {
		l = store.Limit{GroupConcurrency: concurrency, GroupRate: rate}
	}
	return b.setHandlerLimit(handler, l)
}

// requireClaimed claims tasks of the handler a until it must wait, and compares their ids.
func (b *limitTest) requireClaimed(what string, want ...string) (tasks []store.Claimed) {
	b.Helper()
	var got []string
	for {
		ids, a := b.claimAs("one", 10, "a", "b")
		got, tasks = append(got, ids...), append(tasks, a.Tasks...)
		if a.Next != 0 {
			break
		}
	}
	equal(b, "claimed "+what, got, want)
	return tasks
}

// All workers together run at most as many tasks as a limit allows. Tasks of other handlers and
// groups are not delayed. A task counts until its attempt ends, for any reason.
func testConcurrencyLimit(b *limitTest) {
	b.startJudge()
	old := b.now() - 1000
	b.schedule("a", 12, old)
	if b.ofGroups {
		b.scheduleTasks("b", "a", "y", 3, old+100)
	} else {
		b.scheduleTasks("b", "b", "", 3, old+100)
	}
	equal(b, "outcome", b.limit("a", 3, 0), store.Created)
	ids, one := b.claimAs("one", 2, "a", "b")
	equal(b, "claimed", ids, []string{"a0", "a1"})
	ids, two := b.claimAs("two", 10, "a", "b")
	equal(b, "claimed", ids, []string{"a2", "b0", "b1", "b2"})
	b.require(two.Next != 0 && two.Limited, "the answer is %+v", two)
	ids, a := b.claimAs("three", 10, "b", "a")
	b.require(len(ids) == 0 && a.Next != 0 && (a.Limited || b.ofGroups), "claimed %v, and the answer is %+v", ids, a)
	_, a = b.claimAs("four", 10, "b")
	b.require(!a.Limited, "a worker without the handler is limited")

	// The reports of a round make room for its own claim.
	r := b.claimRound(10)
	r.Claim.Handlers = []string{"a"}
	r.Reports = []store.Report{{Lease: leaseOf(one.Tasks[0]), End: store.Done, Due: old}}
	got := b.sendRound(r).Tasks
	b.require(len(got) == 1 && got[0].ID == "a3", "claimed %+v with a report", got)
	end := func(x store.Claimed, end store.End, next store.When) {
		b.Helper()
		b.require(b.report(x, end, next), "the report was refused")
	}
	end(one.Tasks[1], store.Failed, store.When{})
	end(b.requireClaimed("after a failure", "a4")[0], store.HandBack, b.after(1000))
	end(b.requireClaimed("after a task that was handed back", "a5")[0], store.Retry, b.after(1000))
	x := b.requireClaimed("after a retry", "a6")[0]
	equal(b, "cancel", b.changeTask(store.Cancel, x.ID, store.When{}), store.Stopping)
	b.requireClaimed("while a cancelled task runs")
	end(x, store.Done, store.When{})
	x = b.requireClaimed("after a cancel", "a7")[0]
	equal(b, "schedule", b.changeTask(store.Schedule, x.ID, b.after(1000)), store.Following) // without the limit
	end(x, store.Done, store.When{})
	b.requireClaimed("after another task with its key", "a8")
	b.require(!b.report(x, store.Done, store.When{}), "a second report was accepted")
	b.requireClaimed("after a report that was refused")

	// The first waiting tasks are cancelled and moved, and an earlier one comes.
	equal(b, "cancel", b.changeTask(store.Cancel, "a9", store.When{}), store.Removed)
	equal(b, "reschedule", b.changeTask(store.Reschedule, "a10", b.after(1000)), store.Moved)
	b.schedule("a", 1, old-1)
	end(two.Tasks[0], store.Done, store.When{})
	b.requireClaimed("after changes", "a0")
	if b.Reopen != nil {
		b.reopen()
	}
	b.requireClaimed("at the limit")
	b.sleep(leaseUnits + 1)
	ids, a = b.claimAs("one", 10, "a", "b")
	equal(b, "claimed after the leases", len(ids), 6)

	// A pause holds tasks back, and not the limit.
	b.limit("a", 1, 0)
	running := slices.DeleteFunc(a.Tasks, func(x store.Claimed) bool { return x.ID[0] != 'a' })
	isLimited := func(i int) bool {
		r = b.claimRound(10)
		r.Claim.Handlers, r.Reports = []string{"a"}, []store.Report{{Lease: leaseOf(running[i]), End: store.HandBack, Due: old}}
		return b.sendRound(r).Limited
	}
	b.pauseHandler("a", "")
	b.require(!isLimited(0), "a limit holds back tasks of a paused handler")
	b.resumeHandler("a")
	_, err := b.change(b.stamp(), store.Command{Op: store.Pause})
	b.requireNoError(err)
	b.require(!isLimited(1), "a limit holds back tasks while all are paused")
}

// Tasks are claimed no faster than a rate allows. Next is when the next task may be claimed.
func testRateLimit(b *limitTest) {
	b.startJudge()
	const tasks = 30
	interval := 10 * b.unit
	l := store.Limit{Rate: float64(time.Second) / float64(interval)}
	_, burst := l.Pace()
	b.limit("a", 0, l.Rate)
	b.schedule("a", tasks, b.now()-1000)
	var times []store.Time
	for {
		ids, a := b.claimAs("one", 10, "a")
		for i, id := range ids {
			equal(b, "claimed", id, fmt.Sprint("a", len(times)))
			if n := len(times) - int(burst); n >= 0 {
				b.require(a.Now.Sub(times[n]) >= interval, "%d tasks in %v", burst+1, a.Now.Sub(times[n]))
			}
			times = append(times, a.Now)
			b.require(b.report(a.Tasks[i], store.Done, store.When{}), "the report was refused")
		}
		if len(times) == tasks {
			break
		}
		b.require(len(ids) == 10 || a.Next > 0 && a.Next <= interval && !a.Limited, "the answer is %+v, after %d tasks", a, len(ids))
		if b.Advance != nil {
			b.Advance(a.Next)
		} else {
			time.Sleep(a.Next)
		}
	}
	if took := times[tasks-1].Sub(times[0]); b.Advance != nil {
		equal(b, "duration of all claims", took, (tasks-time.Duration(burst))*interval)
	}
	// After a pause, the worker gets one burst of tasks.
	b.sleep(int(interval/b.unit) * int(burst))
	b.schedule("a", tasks, b.now()-1000)
	ids, _ := b.claimAs("one", tasks, "a")
	equal(b, "claimed after a pause", len(ids), int(burst))
	if b.SetWall != nil { // it holds nothing back for an hour
		b.SetWall(-time.Hour)
		if b.judge != nil {
			b.judge.ClockWasSet(b.now())
		}
		b.schedule("a", tasks, b.now()-1000)
		ids, _ = b.claimAs("one", tasks, "a")
		equal(b, "claimed after the clock was set back", len(ids), int(burst))
	}
}

// A new limit counts the tasks that already run. A removed limit has no effect.
func testLimitWhileRunning(b *limitTest) {
	b.startJudge()
	b.schedule("a", 12, b.now()-1000)
	b.scheduleTasks("b", "b", "x", 1, b.now()-1000)
	_, first := b.claimAs("one", 4, "a")
	b.claimAs("one", 1, "b")
	b.limit("a", 3, 0)
	b.requireClaimed("at the limit")
	b.require(b.report(first.Tasks[0], store.Done, store.When{}), "the report was refused")
	b.requireClaimed("after one end")
	b.require(b.report(first.Tasks[1], store.Done, store.When{}), "the report was refused")
	b.requireClaimed("after two ends", "a4")
	equal(b, "outcome", b.limit("a", 5, 0), store.Replaced)
	b.requireClaimed("at a higher limit", "a5", "a6")
	b.limit("a", 6, store.MaxRate)
	if b.Reopen != nil {
		b.reopen()
	}
	b.requireClaimed("after a restart", "a7")
	equal(b, "outcome", b.limit("a", 0, 0), store.Removed)
	_, a := b.claimAs("one", 1, "a")
	equal(b, "claimed without a limit", a.Tasks[0].ID, "a8")
	equal(b, "outcome", b.limit("a", 8, 0), store.Created)
	b.requireClaimed("at a new limit", "a9")
	b.limit("a", 0, 0)
	b.requireClaimed("without a limit", "a10", "a11")
	_, err := b.Store.Repair(ctx, 0)
	b.requireNoError(err)
}

func testLimitSettings(b *storeTest) {
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{}), store.Absent)
	want := make(map[string]store.Limit)
	var items []store.Item
	for i := range store.MaxLimits {
		l := store.Limit{Concurrency: i + 1, Rate: 0.3 * float64(i)}
		items = append(items, store.Item{ID: fmt.Sprint("h ü ", i), Limit: &l})
		want[items[i].ID] = l
	}
	setLimits := func(outcome store.Outcome) {
		b.Helper()
		for chunk := range slices.Chunk(items, store.MaxBatch) {
			for _, o := range b.sendCommand(store.Command{Op: store.SetLimit, Items: chunk}) {
				equal(b, "outcome", o, outcome)
			}
		}
	}
	setLimits(store.Created)
	equal(b, "outcome of one too many", b.setHandlerLimit("a", store.Limit{Rate: 1}), store.Kept)
	if b.Reopen != nil {
		b.reopen()
	}
	equal(b, "limits", b.stats().Limits, want)
	for i := range items {
		items[i].Limit = &store.Limit{}
	}
	setLimits(store.Removed)
	equal(b, "limits", len(b.stats().Limits), 0)
	for _, l := range []*store.Limit{nil, {Concurrency: -1}, {Rate: -1}, {Rate: math.NaN()}, {Rate: 1e-11}, {Rate: 1e308}, {GroupConcurrency: -1}, {GroupRate: -1}, {GroupRate: 1e-11}} {
		b.requireInvalid(store.Command{Op: store.SetLimit, Items: []store.Item{{ID: "a", Limit: l}}})
	}
	b.requireInvalid(store.Command{Op: store.SetLimit, Items: []store.Item{{Limit: &store.Limit{}}}})
}

// A sleeping worker is woken whenever a limit allows another task.
func testLimitWakes(b *limitTest) {
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 {
		b.Skip("workers of this store also claim from time to time: a wake-up may come late")
	}
	s, end := b.startSleeper("sleeper", "a", "c", "d")
	defer end()
	old := b.now() - 1000
	b.limit("a", 1, 0)
	b.schedule("a", 5, old)
	_, a := b.claimAs("other", 1, "a")
	waitForClaims("nothing", 0, s)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	waitForClaims("after the report of the other worker", 1, s)
	b.limit("a", 2, 0)
	waitForClaims("after the limit was raised", 2, s)
	b.limit("a", 3, float64(time.Second)/float64(50*b.unit))
	waitForClaims("after the limit was raised again", 3, s)
	b.limit("a", 0, 0)
	waitForClaims("after the limit was removed", 4, s)

	// A task comes later, while another waits for the limit.
	scheduleLater := func(handler string, in int) {
		items := limitedTasks("later "+handler, handler, "", 1, 0)
		if b.ofGroups {
			items[0].Task.Group = "x"
		}
		items[0].When = b.after(in)
		b.scheduleItems(items)
	}
	b.limit("d", 1, 0)
	b.schedule("d", 2, old)
	_, a = b.claimAs("other", 1, "d")
	waitForClaims("nothing", 4, s)
	scheduleLater("d", 5)
	r := b.claimRound(1)
	r.Claim.Handlers = []string{"d"}
	r.Reports = []store.Report{{Lease: leaseOf(a.Tasks[0]), End: store.Done}}
	a = b.sendRound(r)
	waitForClaims("nothing", 4, s)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	b.sleep(5)
	waitForClaims("later", 5, s)

	// A rate wakes the worker in the same way.
	interval := int(time.Second / b.unit)
	b.limit("c", 0, 1)
	b.schedule("c", 3, old)
	waitForClaims("the rate", 6, s)
	scheduleLater("c", 4*interval)
	waitForClaims("nothing", 6, s)
	b.sleep(interval)
	waitForClaims("the rate", 7, s)
	b.sleep(interval)
	waitForClaims("the rate", 8, s)
	b.sleep(2 * interval)
	waitForClaims("later", 9, s)
}

// One claim gets at most MaxOfGroup tasks of a group, and others that are due later.
func testGroupShare(b *storeTest) {
	old := b.now() - 1000
	b.scheduleTasks("x", "a", "x", 5*store.MaxOfGroup/2, old)
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
	b.startJudge()
	old := b.now() - 1000
	items := limitedTasks("x", "a", "x", 4, old)
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
		equal(b, "claimed", idsOf(a.Tasks), want)
		return a
	}
	claimBoth()
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")

	// A claim that skips a task of a full group also tells when the next one without a group is due.
	b.scheduleItems([]store.Item{{ID: "later", Task: store.Task{ID: "later", Handler: "a"}, When: b.after(10 * leaseUnits)}})
	r.Lease *= 100
	a = claimBoth("x0")
	b.require(a.Next > 0 && a.Next <= 10*leaseUnits*b.unit, "Next is %v", a.Next)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	a = claimBoth("x2")
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	claimBoth("x3")
}

// A group is part of a task: it stays in dead letters, requeued and kept runs and imports, and
// lists select it.
func testGroupEntries(b *storeTest) {
	now := b.now()
	items := limitedTasks("x", "a", "x", 3, now-1000)
	keeping := store.Keeping{Most: 3}
	for i := range items {
		items[i].Task.Record = append(keeping.Append([]byte{1, 0, 0, 0, 0, 0, 0, 128 | 8}), 1)
	}
	b.scheduleItems(items)
	b.scheduleMany("a", 3, now-500)
	_, a := b.claimAs("one", 2, "a")
	for i, end := range []store.End{store.Failed, store.Done} {
		b.reportKept(a.Tasks[i], end, b.after(1000))
	}
	for _, id := range []string{"x0", store.DeadID("x0"), store.RunID("x0", 0), "x1", store.RunID("x1", 0), store.HeadID("x1"), "x2"} {
		equal(b, "group of "+id, b.getEntry(id).Group, "x")
	}
	all := b.allEntries()
	b.requireLists(all, []int{2}, []store.Filter{
		{Group: "x"}, {Group: "x", State: store.Pending}, {Group: "x", Prefix: "x1"}, {Group: "x", State: store.Past}, {Group: "none"}, {Group: "x", Handler: "a", To: now},
	}...)
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
	x := limitedTasks("x", "a", "x", 3, now+1000)[2]
	x.Task.Group = "z"
	c := store.Command{Op: store.Schedule, Keep: store.KeepSame, Items: []store.Item{x}}
	equal(b, "outcome", b.sendCommand(c)[0], store.Replaced)
	equal(b, "outcome", b.sendCommand(c)[0], store.Kept)
	equal(b, "group", b.getEntry("x2").Group, "z")
	x.Task.Group = "a\x00b"
	b.requireInvalid(store.Command{Op: store.Schedule, Items: []store.Item{x}})
}
