package storetest

import "github.com/tickless/tickless/durable/store"

// periodicTask returns a task with a period of p and another number, its body.
func periodicTask(id string, p, body byte) store.Task {
	return store.Task{ID: id, Handler: "h", Record: []byte{1, body, 0, 0, 0, 0, 0, 8, p, body}}
}

// A change of a repeating task leaves a run that is due, being retried or running, with its
// time and its attempts, and gives it the new content.
func testChangedRuns(b *storeTest) {
	due := b.now() - 9
	farFuture := b.now().Add(1000 * b.unit)
	change := func(id string, period byte, want store.Outcome) {
		c := store.Command{Op: store.Schedule, Keep: store.KeepSame, Items: []store.Item{{ID: id, When: store.At(farFuture), Task: periodicTask(id, period, 2), Next: true}}}
		equal(b, "outcome for "+id, b.sendCommand(c)[0], want)
	}
	begin := func(id string) {
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.At(due), Task: periodicTask(id, 1, 1)}}})
	}
	stays := func(id string, attempts int, want store.Task) store.Entry {
		e := b.getEntry(id)
		equal(b, "state of "+id, e.State, store.Pending)
		equal(b, "due of "+id, e.Due, due)
		equal(b, "attempts of "+id, e.Attempts, attempts)
		equal(b, "content of "+id, e.Task, want)
		return e
	}
	for _, period := range []byte{1, 2} { // the same period, and another one
		name := string('a' + rune(period))
		// next checks when the task is due after the run of x.
		next := func(x store.Claimed) {
			equal(b, "the worker may skip the run", !x.Following, period == 1)
			reported := b.now().Add(500 * b.unit)
			b.report(x, store.Done, store.At(reported))
			want := reported
			if period == 2 {
				want = farFuture
			}
			e := b.getEntry(x.ID)
			equal(b, "what follows "+x.ID, e, store.Entry{Task: periodicTask(x.ID, period, 2), State: store.Pending, At: want, Due: want})
		}
		id := name + " overdue"
		begin(id)
		change(id, period, store.Replaced)
		stays(id, 0, periodicTask(id, period, 2))
		next(b.claimOne(id))

		id = name + " retried"
		begin(id)
		b.report(b.claimOne(id), store.Retry, store.At(b.now()))
		change(id, period, store.Replaced)
		equal(b, "failures", len(stays(id, 1, periodicTask(id, period, 2)).Failures), 1)
		next(b.claimOne(id))

		for end, attempts := range map[store.End]int{store.Retry: 1, store.HandBack: 0} {
			id = name + " running"
			begin(id)
			x := b.claimOne(id)
			change(id, period, store.Following)
			b.require(b.report(x, end, store.At(b.now())), "the report was refused")
			stays(id, attempts, periodicTask(id, period, 2))
			change(id, period, store.Kept)
			next(b.claimOne(id))
			b.changeTask(store.Cancel, id, store.When{})
		}

		id = name + " crashes"
		begin(id)
		b.claimOne(id)
		change(id, period, store.Following)
		b.sleep(leaseUnits + 1)
		x := b.claimOne(id)
		equal(b, "due after a crash", x.Due, due)
		equal(b, "attempts before", x.Attempts, 1)
		equal(b, "the content", x.Task, periodicTask(id, period, 2))
		next(x)

		id = name + " dies"
		begin(id)
		x = b.claimOne(id)
		change(id, period, store.Following)
		b.require(b.report(x, store.Failed, store.At(farFuture)), "the report was refused")
		equal(b, "the run that died", b.getEntry(store.DeadID(id)).Due, due)
		equal(b, "the next run", b.getEntry(id).At, farFuture)
	}

	// A run that is not due yet keeps its time if the times of the task are the same.
	at := b.now().Add(400 * b.unit)
	for _, period := range []byte{1, 2} {
		c := store.Command{Op: store.Schedule, Items: []store.Item{{ID: "future", When: store.At(at), Task: periodicTask("future", 1, 1)}}}
		b.sendCommand(c)
		change("future", period, store.Replaced)
		equal(b, "the time", b.getEntry("future").At, []store.Time{at, farFuture}[period-1])
		b.changeTask(store.Cancel, "future", store.When{})
	}

	// Reschedule leaves the run too, unless it makes it earlier.
	begin("moved")
	equal(b, "later", b.changeTask(store.Reschedule, "moved", store.At(farFuture)), store.Following)
	e := stays("moved", 0, periodicTask("moved", 1, 1))
	b.require(e.Following && e.Next == farFuture, "%+v", e)
	equal(b, "now", b.changeTask(store.Reschedule, "moved", b.after(0)), store.Moved)
	b.report(b.claimOne("moved"), store.Done, store.At(b.now()))
	equal(b, "what follows", b.getEntry("moved").At, farFuture)
}
