package storetest

import (
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A worker only gets tasks with its handlers and schedules. Other tasks do not delay
// them.
func testUnknownHandlers(b *storeTest) {
	b.startJudge()
	const each = 2 * store.MaxClaim
	schedule := func(prefix, handler, schedule string, n int) {
		items := limitedTasks(prefix, handler, "", n, 1)
		for i := range items {
			items[i].Task.Schedule = schedule
		}
		b.scheduleItems(items)
	}
	schedule("unknown", "other", "", each)
	schedule("puzzling", "h", "daily", each)
	b.schedule("known", store.At(1000))
	b.require(b.report(b.claimOne("known"), store.Done, store.When{}), "the report was refused")
	a := b.sendRound(b.claimRound(10))
	b.require(len(a.Tasks) == 0 && a.Next != 0, "claimed %d tasks, Next is %v", len(a.Tasks), a.Next)
	equal(b, "unknown", b.stats().Unknown, 2*each)
	// This worker has the handler "other" and the schedule "daily", but not the handler
	// "third".
	schedule("third", "third", "daily", 1)
	r := b.claimRound(store.MaxClaim)
	r.Claim.Handlers = []string{"other", "h"}
	r.Claim.Schedules = []string{"weekly", "daily"}
	n := 0
	for a := b.sendRound(r); len(a.Tasks) > 0; a = b.sendRound(r) {
		n += len(a.Tasks)
	}
	equal(b, "claimed", n, 2*each)
	equal(b, "unknown", b.stats().Unknown, 1)
	// After the last worker with a handler leaves, the handler's tasks count as unknown.
	s := b.stamp()
	r.Claim = store.Claim{Asked: true, Handlers: []string{"third"}, Schedules: []string{"daily"}}
	_, err := b.do(s, r)
	b.requireNoError(err)
	equal(b, "unknown", b.stats().Unknown, 0)
	s.Number++
	r.Claim, r.Leave = store.Claim{}, true
	_, err = b.do(s, r)
	b.requireNoError(err)
	equal(b, "unknown", b.stats().Unknown, 1)
	r = b.claimRound(10)
	// A claim that names no handlers gets no tasks.
	r.Claim.Handlers, r.Claim.Schedules = nil, nil
	equal(b, "claimed", len(b.sendRound(r).Tasks), 0)
}

// A worker is listed from its first claim until it leaves, and its running tasks name it.
func testSeenWorkers(b *storeTest) {
	equal(b, "workers of a new shard", len(b.workers()), 0)
	r := b.claimRound(1)
	r.Worker, r.About = store.MaxWorker, `{"host":"ä"}`
	r.Claim.Handlers, r.Claim.Schedules = []string{"h", "other"}, []string{"daily"}
	first := b.stamp()
	do := func(s store.Stamp, r store.Round) []store.Claimed {
		b.Helper()
		a, err := b.Store.Do(ctx, 0, s, r)
		b.requireNoError(err)
		return a.Tasks
	}
	do(first, r)
	began := b.now()
	b.schedule("a", store.After(0))
	b.schedule("b", store.After(0))
	b.sleep(1)
	first.Number++
	equal(b, "the claimed task", do(first, r)[0].ID, "a")
	x := b.getEntry("a")
	equal(b, "the worker of a running task", x.Worker, r.Worker)
	equal(b, "the worker of a pending task", b.getEntry("b").Worker, 0)

	second, r2 := b.stamp(), b.claimRound(1)
	r2.Worker = 7
	equal(b, "the claimed task", do(second, r2)[0].ID, "b")
	equal(b, "the worker of a running task", b.getEntry("b").Worker, 7)
	got := b.workers()
	equal(b, "the number of workers", len(got), 2)
	w := got[store.MaxWorker]
	b.require(w.Seen >= began && w.Seen <= b.now() && w.Lease >= r.Lease, "%+v was seen after %d", w, began)
	w.Seen, w.Lease = 0, 0
	equal(b, "a worker", w, store.Worker{Number: store.MaxWorker, About: r.About, Handlers: r.Claim.Handlers, Schedules: r.Claim.Schedules})
	equal(b, "a worker that gives no description", got[7].About, "")

	// A cancelled or rescheduled task still names its worker; a task that waits again does not.
	b.changeTask(store.Cancel, "a", store.When{})
	equal(b, "the worker of a cancelled task", b.getEntry("a").Worker, r.Worker)
	b.changeTask(store.Schedule, "a", store.After(0))
	equal(b, "the worker of a rescheduled task", b.getEntry("a").Worker, r.Worker)
	equal(b, "the worker of a listed task", b.listAll(store.Filter{State: store.Running}, 10)[0].Worker, r.Worker)
	first.Number++
	report := store.Report{Lease: store.Lease{ID: "a", Token: x.Token}, End: store.Retry, Next: store.After(0), Due: x.Due, Text: "text"}
	end := b.emptyRound()
	end.Worker, end.Reports = r.Worker, []store.Report{report}
	do(first, end)
	equal(b, "the worker of a task that waits again", b.getEntry("a").Worker, 0)
	second.Number++
	end.Worker, end.Reports = 7, []store.Report{{Lease: store.Lease{ID: "b", Token: b.getEntry("b").Token}, End: store.Done, Due: x.Due}}
	do(second, end)
	b.requireAbsent("b")

	// A worker that has left is no longer listed. A repeated round does not bring it back.
	first.Number++
	end.Worker, end.Reports, end.Leave = r.Worker, nil, true
	do(first, end)
	do(first, end)
	got = b.workers()
	equal(b, "the workers after one has left", len(got), 1)
	equal(b, "the worker that stays", got[7].Number, 7)

	// A worker that is silent for long may be lost, but it is still listed.
	if b.Advance != nil {
		b.Advance(time.Hour)
		equal(b, "the workers after an hour", len(b.workers()), 1)
		second.Number++
		do(second, r2)
		equal(b, "a worker that is back is lost", b.workers()[7].Lost, false)
	}

	r.About = "a\x00b"
	_, err := b.Store.Do(ctx, 0, b.stamp(), r)
	b.requireError(err, store.ErrInvalid)
}

// workers returns the workers of shard 0 by their numbers.
func (b *storeTest) workers() map[int64]store.Worker {
	b.Helper()
	workers, err := b.Store.Workers(ctx, 0)
	b.requireNoError(err)
	byNumber := make(map[int64]store.Worker)
	for _, w := range workers {
		slices.Sort(w.Handlers)
		slices.Sort(w.Schedules)
		byNumber[w.Number] = w
	}
	return byNumber
}
