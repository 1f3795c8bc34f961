package storetest

import (
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// A worker only gets tasks with its handlers and schedules. Other tasks do not delay
// them.
func testUnknownHandlers(b *storeTest) {
	scheduleTask := func(id, handler, schedule string, at store.Time) {
		t := store.Task{ID: id, Handler: handler, Schedule: schedule}
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.At(at), Task: t}}})
	}
	for i := range 2 * store.MaxClaim {
		scheduleTask(fmt.Sprint("unknown", i), "other", "", 1)
		scheduleTask(fmt.Sprint("puzzling", i), "h", "daily", 1)
	}
	scheduleTask("known", "h", "", 2)
	x := b.claimOne("known")
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	a := b.sendRound(b.claimRound(10))
	b.require(len(a.Tasks) == 0 && a.Next != 0, "claimed %d tasks, Next is %v", len(a.Tasks), a.Next)
	st := b.stats()
	equal(b, "unknown", st.Unknown, 4*store.MaxClaim)
	equal(b, "claimed", st.Claimed, 1)
	for _, id := range []string{"unknown0", "puzzling0"} {
		e := b.getEntry(id)
		b.require(e.State == store.Pending && e.Attempts == 0, "%+v", e)
	}
	// This worker has the handler "other" and the schedule "daily", but not the handler
	// "third".
	scheduleTask("third", "third", "daily", 1)
	r := b.claimRound(store.MaxClaim)
	r.Claim.Handlers = []string{"other", "h"}
	r.Claim.Schedules = []string{"weekly", "daily"}
	n := 0
	for {
		a := b.sendRound(r)
		if len(a.Tasks) == 0 {
			break
		}
		for _, x := range a.Tasks {
			equal(b, "attempts", x.Attempts, 0)
			b.require(x.ID != "third", "claimed a task of another handler")
			if x.ID[0] == 'p' {
				equal(b, "schedule", x.Schedule, "daily")
			}
			n++
		}
	}
	equal(b, "claimed", n, 4*store.MaxClaim)
	equal(b, "unknown", b.stats().Unknown, 1)
	// After the last worker with a handler leaves, the handler's tasks count as unknown.
	s := b.stamp()
	r.Claim = store.Claim{Asked: true, Handlers: []string{"third"}, Schedules: []string{"daily"}}
	_, err := b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "unknown", b.stats().Unknown, 0)
	s.Number++
	r.Claim, r.Leave = store.Claim{}, true
	_, err = b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "unknown", b.stats().Unknown, 1)
	r = b.claimRound(10)
	// A claim that names no handlers gets no tasks.
	r.Claim.Handlers, r.Claim.Schedules = nil, nil
	equal(b, "claimed", len(b.sendRound(r).Tasks), 0)
}
