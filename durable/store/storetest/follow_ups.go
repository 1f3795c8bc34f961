package storetest

import (
	"github.com/tickless/tickless/durable/store"
)

// followedRecord returns a record with follow-ups of the handlers "h" and "unknown".
func followedRecord(repeats bool) []byte {
	inner := func(body byte) []byte {
		return new(store.FollowUps).Append([]byte{2, 0, 0, 0, 0, 0, 0, 0, body})
	}
	fields := byte(0)
	if repeats {
		fields = 8
	}
	f := store.FollowUps{Success: &store.Task{Handler: "h", Record: inner('s')}, Failure: &store.Task{Handler: "ünknown", Record: inner('f')}}
	return f.Append([]byte{2, 1, 2, 3, 4, 5, 6, fields, 100, 'b'})
}

// A follow-up comes once for each end of a run, however often the end is reported.
func testFollowUps(b *storeTest) {
	scheduleTask := func(id string, repeats bool) {
		t := store.Task{ID: id, Handler: "h", Group: "grüp", Record: followedRecord(repeats)}
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(0), Task: t}}})
	}
	report := func(x store.Claimed, end store.End, next store.When) (store.Stamp, store.Round, store.Receipt) {
		b.Helper()
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(x), End: end, Next: next, Due: x.Due, Text: "it broke", Keep: true}}
		s := b.stamp()
		a, err := b.Store.Do(ctx, 0, s, r)
		b.requireNoError(err)
		return s, r, a.Receipts[0]
	}
	// followUp checks the only entry beside n others, and removes it.
	followUp := func(x store.Claimed, want store.RunEnd, handler string, body byte, n int) {
		b.Helper()
		b.require(len(b.allEntries()) == n+1, "%d entries beside the follow-up, want %d", len(b.allEntries())-1, n)
		e := b.getEntry(store.FollowUpID(x.ID, x.Token))
		equal(b, "the follow-up's state", []any{e.State, e.Handler, e.Group, e.Due, e.Attempts, e.Repeats()}, []any{store.Pending, handler, "grüp", e.At, 0, false})
		b.require(e.At <= b.now() && e.At >= x.Due, "the follow-up is due at %d", e.At)
		got, ok := e.FollowedRun()
		b.require(ok, "the record of the follow-up is %q", e.Record)
		equal(b, "the ended run", got, want)
		_, size, _ := e.FollowUps()
		equal(b, "the follow-up's content", e.Record[7:size], []byte{0, body})
		b.require(string(e.Record[1:7]) != "\x00\x00\x00\x00\x00\x00", "the follow-up has no generation")
		equal(b, "cancel", b.changeTask(store.Cancel, e.ID, store.When{}), store.Removed)
	}

	scheduleTask("done", false)
	x := b.claimOne("done")
	s, r, _ := report(x, store.Done, store.When{})
	_, err := b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	_, _, receipt := report(x, store.Done, store.When{})
	equal(b, "a second report", receipt, store.Refused)
	followUp(x, store.RunEnd{Done: true, Due: x.Due, Attempts: 1}, "h", 's', 0)

	scheduleTask("failed", false)
	x = b.claimOne("failed")
	report(x, store.Retry, store.After(0))
	x = b.claimOne("failed")
	report(x, store.Failed, store.When{})
	followUp(x, store.RunEnd{Due: x.Due, Attempts: 2, Text: "it broke"}, "ünknown", 'f', 1)
	b.changeTask(store.Requeue, "failed", store.After(0))
	x = b.claimOne("failed")
	report(x, store.Dropped, store.When{})
	followUp(x, store.RunEnd{Due: x.Due, Attempts: 0, Text: "it broke"}, "ünknown", 'f', 1)
	b.changeTask(store.Purge, "failed", store.When{})

	// A crash ends the run without a worker.
	scheduleTask("poison", false)
	for range b.emptyRound().MaxCrashes {
		x = b.claimOne("poison")
		b.sleep(leaseUnits + 1)
	}
	b.claimNone()
	followUp(x, store.RunEnd{Due: x.Due, Attempts: 3, Crashes: 3, Text: store.TextPoison}, "ünknown", 'f', 1)
	b.changeTask(store.Purge, "poison", store.When{})

	// Each run of a repeating task has a follow-up, also a requeued one.
	scheduleTask("repeats", true)
	x = b.claimOne("repeats")
	report(x, store.Done, store.After(0))
	followUp(x, store.RunEnd{Done: true, Due: x.Due, Attempts: 1}, "h", 's', 1)
	x = b.claimOne("repeats")
	report(x, store.Failed, b.after(1000))
	followUp(x, store.RunEnd{Due: x.Due, Attempts: 1, Text: "it broke"}, "ünknown", 'f', 2)
	b.changeTask(store.Requeue, store.DeadID("repeats"), store.After(0))
	x = b.claim(10)[0]
	report(x, store.Done, store.When{})
	followUp(x, store.RunEnd{Done: true, Due: x.Due, Attempts: 1}, "h", 's', 1)
	b.changeTask(store.Cancel, "repeats", store.When{})

	// A cancelled run has none, nor a failed one of a task that was replaced. A run that
	// succeeded has one.
	for _, end := range []store.End{store.Done, store.Failed} {
		scheduleTask("cancelled", false)
		x = b.claimOne("cancelled")
		b.changeTask(store.Cancel, "cancelled", store.When{})
		report(x, end, store.When{})
		equal(b, "entries after the end of a cancelled run", len(b.allEntries()), 0)

		scheduleTask("replaced", false)
		x = b.claimOne("replaced")
		b.changeTask(store.Schedule, "replaced", b.after(1000))
		report(x, end, store.When{})
		if end == store.Done {
			followUp(x, store.RunEnd{Done: true, Due: x.Due, Attempts: 1}, "h", 's', 1)
		}
		equal(b, "entries after the end of a replaced run", len(b.allEntries()), 1)
		b.changeTask(store.Cancel, "replaced", store.When{})
	}

	// A follow-up runs like any task, and may be requeued.
	scheduleTask("chain", false)
	report(b.claimOne("chain"), store.Done, store.When{})
	next := b.claim(10)
	b.require(len(next) == 1 && store.KeyOf(next[0].ID) == "chain" && next[0].Attempts == 0, "claimed %+v", next)
	report(next[0], store.Failed, store.When{})
	equal(b, "requeue", b.changeTask(store.Requeue, next[0].ID, store.After(0)), store.Moved)
	report(b.claimOne(next[0].ID), store.Done, store.When{})
	equal(b, "entries at the end", len(b.allEntries()), 0)
}
