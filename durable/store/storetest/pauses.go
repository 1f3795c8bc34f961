package storetest

import (
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

func (b *storeTest) pauseHandler(handler, note string) store.Outcome {
	b.Helper()
	return b.sendCommand(store.Command{Op: store.PauseHandler, Items: []store.Item{{ID: handler, Note: note}}})[0]
}

func (b *storeTest) resumeHandler(handler string) store.Outcome {
	b.Helper()
	return b.sendCommand(store.Command{Op: store.ResumeHandler, Items: []store.Item{{ID: handler}}})[0]
}

// No claim gets tasks of a paused handler, and they delay no other. Its running tasks end as
// usual.
func testPausedHandlers(b *storeTest) {
	b.startJudge()
	now := b.now()
	b.scheduleMany("a", 7, now-1000)
	b.scheduleMany("b", 3, now-100)
	_, before := b.claimAs("one", 5, "a", "b")
	equal(b, "pause", b.pauseHandler("a", "ünsure"), store.Created)
	b.sleep(1)
	equal(b, "pause again", b.pauseHandler("a", "the bank is down"), store.Replaced)
	if b.Reopen != nil {
		b.reopen()
	}
	equal(b, "the note", b.stats().PausedHandlers["a"].Note, "the bank is down")
	equal(b, "pauses of a waiting and a running task", []bool{b.getEntry("a5").HandlerPaused, b.getEntry("a0").HandlerPaused}, []bool{true, false})
	x := before.Tasks
	equal(b, "extend", b.extend(x[0]), store.Held)
	b.require(b.report(x[0], store.Retry, store.At(now)) && b.report(x[1], store.HandBack, store.When{}) && b.report(x[2], store.Done, store.At(now)) &&
		b.report(x[3], store.Failed, store.When{}), "a report was refused")
	equal(b, "requeue", b.changeTask(store.Requeue, "a3", b.after(0)), store.Moved)
	b.schedule("other", b.after(0))
	requireClaimed := func(what string, n int, want []string, handlers ...string) {
		b.Helper()
		ids, a := b.claimAs("one", n, handlers...)
		equal(b, "claimed "+what, ids, want)
		b.require(n < 10 || a.Next != 0 && !a.Limited, "the answer is %+v", a)
	}
	requireClaimed("beside the pause", 2, []string{"b0", "b1"}, "c", "a", "b", "h")
	requireClaimed("beside the pause", 10, []string{"b2", "other"}, "a", "b", "h")
	requireClaimed("of the paused handler", 10, nil, "a")
	b.sleep(leaseUnits + 1) // a4 crashes
	ids, _ := b.claimAs("one", 10, "a", "b")
	equal(b, "claimed after leases have ended", len(ids), 3)

	// A limit and a pause do not depend on each other.
	b.setHandlerLimit("a", store.Limit{Concurrency: 2})
	equal(b, "resume", b.resumeHandler("a"), store.Removed)
	equal(b, "resume again", b.resumeHandler("a"), store.Absent)
	ids, _ = b.claimAs("two", 10, "a")
	equal(b, "claimed within the limit", len(ids), 2)
	b.pauseHandler("a", "")
	equal(b, "no limit", b.setHandlerLimit("a", store.Limit{}), store.Removed)
	requireClaimed("of the paused handler", 10, nil, "a")
	b.resumeHandler("a")
	ids, _ = b.claimAs("two", 10, "a")
	equal(b, "claimed after the pause", len(ids), 5)

	for _, x := range []store.Item{{ID: ""}, {ID: "a\n"}, {ID: "a", Note: "\x00"}, {ID: "a", Note: strings.Repeat("x", store.MaxText+1)}} {
		b.requireInvalid(store.Command{Op: store.PauseHandler, Items: []store.Item{x}})
	}
}

// Paused handlers with many kinds of due tasks leave places to others, and cost later claims
// nothing. All their tasks are there after the pauses.
func testManyPausedHandlers(b *storeTest) {
	const handlers, schedules = 30, 12
	now := b.now()
	var names []string
	r := b.claimRound(store.MaxClaim)
	for i := range schedules {
		r.Claim.Schedules = append(r.Claim.Schedules, fmt.Sprint("s", i))
	}
	for i := range handlers {
		names = append(names, fmt.Sprint("paused", i))
		var items []store.Item
		for _, s := range append([]string{""}, r.Claim.Schedules...) {
			x := task(names[i] + s)
			x.Handler, x.Schedule = names[i], s
			items = append(items, store.Item{ID: x.ID, Task: x, When: store.At(now - 100)})
		}
		b.sendCommand(store.Command{Op: store.Schedule, Items: items})
		b.pauseHandler(names[i], "")
	}
	b.schedule("free", store.At(now-1))
	r.Claim.Handlers = append(names, "h")
	var got []store.Claimed
	for range 10 {
		a := b.sendRound(r)
		got = append(got, a.Tasks...)
		equal(b, "paused handlers", a.PausedHandlers, names)
		if a.Next != 0 {
			break
		}
	}
	b.require(len(got) == 1 && got[0].ID == "free", "claimed %+v", got)
	a := b.sendRound(r)
	b.require(len(a.Tasks) == 0 && a.Next != 0, "the answer is %+v", a)
	equal(b, "overdue", b.stats().Overdue, handlers*(schedules+1))
	_, err := b.Store.Repair(ctx, 0)
	b.requireNoError(err)
	for i, h := range names {
		b.resumeHandler(h)
		equal(b, "claimed of "+h, len(b.sendRound(r).Tasks), schedules+1)
		equal(b, "paused handlers left", len(b.stats().PausedHandlers), handlers-1-i)
	}
}

// A sleeping worker is woken when a handler is paused, so that it knows, and resumed.
func testPausedHandlerWakes(b *storeTest) {
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 {
		b.Skip("workers of this store also claim from time to time: a wake-up may come late")
	}
	s, end := b.startSleeper("sleeper", "a", "b")
	defer end()
	b.pauseHandler("a", "")
	b.scheduleMany("a", 3, b.now()-1000)
	waitForClaims("nothing", 0, s)
	b.scheduleMany("b", 1, b.now()-1000)
	waitForClaims("of another handler", 1, s)
	b.resumeHandler("a")
	waitForClaims("after the pause", 4, s)
}

// pauseRandomHandler pauses a handler, or ends its pause.
func (m *modelTest) pauseRandomHandler() {
	c := store.Command{Op: store.PauseHandler, Items: []store.Item{{ID: fmt.Sprint("h", m.rng.IntN(3)), Note: fmt.Sprint("note ", m.rng.IntN(5))}}}
	if len(m.pausedHandlers) > 0 && m.rng.IntN(8) > 0 {
		c.Op, c.Items[0].Note = store.ResumeHandler, ""
	}
	m.sendAndApply(c)
}

// applyHandlerPause applies PauseHandler or ResumeHandler to the model and returns the
// expected outcome.
func (m *model) applyHandlerPause(op store.Op, handler, note string) store.Outcome {
	p, paused := m.pausedHandlers[handler]
	switch {
	case op == store.ResumeHandler && !paused:
		return store.Absent
	case op == store.ResumeHandler:
		delete(m.pausedHandlers, handler)
		return store.Removed
	case paused:
		m.pausedHandlers[handler] = store.HandlerPause{Since: p.Since, Note: note}
		return store.Replaced
	}
	m.pausedHandlers[handler] = store.HandlerPause{Since: m.now, Note: note}
	return store.Created
}

// applyPause applies PauseTask or ResumeTask to the model and returns the expected outcome.
func (m *model) applyPause(t *modelTask, pause bool) store.Outcome {
	switch {
	case t == nil || t.State > store.Running || t.Stopping && !t.Following:
		return store.Absent
	case pause == t.Paused && !(pause && t.Once):
		return store.Kept
	}
	if !pause && t.State == store.Pending && t.At <= m.now && !t.Once {
		m.caseCounts["resumed late"]++
	}
	t.Paused, t.Once = pause, false
	if t.State == store.Running {
		m.caseCounts["a running task is paused"]++
		return store.Following
	}
	return store.Moved
}

// Tasks of the same kind do not wait for paused ones, which have a list of their own.
func testManyPausedTasks(b *storeTest) {
	b.startJudge()
	due := b.now() - 1000
	var items []store.Item
	for i := range 200 {
		items = append(items, store.Item{ID: fmt.Sprint("p", i), Task: task(fmt.Sprint("p", i)), When: store.At(due - 500), Paused: true})
	}
	b.scheduleItems(items)
	b.schedule("free", store.At(due))
	b.sendRound(b.claimRound(0)) // an idle worker learns what is due
	b.require(b.report(b.claimOne("free"), store.Done, store.When{}), "the report was refused")
	a := b.sendRound(b.claimRound(10))
	b.require(len(a.Tasks) == 0 && a.Next != 0, "the answer is %+v", a)
	requireListed := func(f store.Filter, want int) {
		b.Helper()
		equal(b, fmt.Sprintf("entries by %+v", f), len(b.listAll(f, 50)), want)
	}
	requireListed(store.Filter{Paused: true}, 200)
	requireListed(store.Filter{Paused: true, State: store.Pending, Handler: "h", Prefix: "p1"}, 111)
	requireListed(store.Filter{Paused: true, Handler: "other"}, 0)
	requireListed(store.Filter{State: store.Pending}, 200)
	equal(b, "unknown", b.stats().Unknown, 0)
	_, err := b.Store.Repair(ctx, 0)
	b.requireNoError(err)
	b.claimNone()
	for _, x := range items[:7] {
		equal(b, "resume", b.changeTask(store.ResumeTask, x.ID, store.When{}), store.Moved)
	}
	equal(b, "claimed after they were resumed", len(b.claim(100)), 7)
	requireListed(store.Filter{Paused: true}, 193)
	b.removeAll()
}
