package storetest

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

func testScheduleModes(b *storeTest) {
	schedule := func(k store.Keep, at store.Time) store.Outcome {
		return b.sendCommand(store.Command{Op: store.Schedule, Keep: k, Items: []store.Item{item("k", store.At(at))}})[0]
	}
	now := b.now().Add(100 * b.unit)
	for _, x := range []struct {
		keep store.Keep
		at   store.Time
		want store.Outcome
	}{
		{store.KeepAny, 50, store.Created},
		{store.KeepAny, 10, store.Kept},
		{store.KeepEarlier, 50, store.Kept},
		{store.KeepEarlier, 60, store.Kept},
		{store.KeepEarlier, 49, store.Replaced},
		{store.KeepLater, 49, store.Kept},
		{store.KeepLater, 40, store.Kept},
		{store.KeepLater, 60, store.Replaced},
		{store.KeepNone, 10, store.Replaced},
	} {
		equal(b, "outcome", schedule(x.keep, now+x.at), x.want)
		e := b.getEntry("k")
		equal(b, "moved", e.At == now+x.at, x.want != store.Kept || x.at == 50 || x.at == 49)
	}
	// Keep has the same effect for a Following task. KeepAny also keeps a running task.
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Removed)
	b.schedule("k", b.after(0))
	x := b.claimOne("k")
	equal(b, "outcome", schedule(store.KeepAny, now), store.Kept)
	equal(b, "outcome", schedule(store.KeepEarlier, now+50), store.Following)
	equal(b, "outcome", schedule(store.KeepEarlier, now+60), store.Kept)
	equal(b, "outcome", schedule(store.KeepLater, now+50), store.Kept)
	equal(b, "outcome", schedule(store.KeepLater, now+60), store.Following)
	equal(b, "next", b.getEntry("k").Next, now+60)
	// Only KeepAny keeps a dead task.
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Stopping)
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
	b.schedule("k", b.after(0))
	b.require(b.report(b.claimOne("k"), store.Failed, store.When{}), "the report was refused")
	equal(b, "outcome", schedule(store.KeepAny, now), store.Kept)
	equal(b, "outcome", schedule(store.KeepEarlier, now), store.Replaced)
	e := b.getEntry("k")
	equal(b, "state", e.State, store.Pending)
	equal(b, "attempts and failures", e.Attempts+len(e.Failures), 0)
}

// If a key is scheduled while its task runs, the new task is pending after the attempt,
// however the attempt ends.
func testFollowing(b *storeTest) {
	reportAs := func(end store.End, next store.When) func(store.Claimed) {
		return func(x store.Claimed) { equal(b, "receipt", b.sendReport(x, end, next), store.Overtaken) }
	}
	waysToEnd := map[string]func(x store.Claimed){
		"done":     reportAs(store.Done, store.When{}),
		"repeats":  reportAs(store.Done, b.after(100)),
		"retry":    reportAs(store.Retry, b.after(100)),
		"failed":   reportAs(store.Failed, store.When{}),
		"dropped":  reportAs(store.Dropped, store.When{}),
		"run dies": reportAs(store.Failed, b.after(100)),
		"handback": reportAs(store.HandBack, b.after(100)),
		"crash":    func(store.Claimed) { b.sleep(leaseUnits + 1) },
	}
	for name, end := range waysToEnd {
		for _, stopped := range []bool{false, true} {
			b.schedule(name, b.after(0))
			x := b.claimOne(name)
			if stopped {
				equal(b, "cancel", b.changeTask(store.Cancel, name, store.When{}), store.Stopping)
				equal(b, "extend", b.extend(x), store.HeldStopping)
			}
			at := b.now() - 5
			newTask := task(name)
			newTask.Record = []byte("another")
			outcomes := b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: name, When: store.At(at), Task: newTask}}})
			equal(b, "outcome", outcomes[0], store.Following)
			e := b.getEntry(name)
			b.require(e.State == store.Running && e.Following && e.Next == at && e.Stopping == stopped, "%+v", e)
			equal(b, "the record while it runs", string(e.Record), "record of "+name)
			b.require(e.NextTask != nil && reflect.DeepEqual(*e.NextTask, newTask), "the NextTask is %+v", e.NextTask)
			end(x)
			y := b.claimOne(name)
			equal(b, name+": the next record", string(y.Record), "another")
			equal(b, "due", y.Due, at)
			equal(b, "attempts and crashes", y.Attempts+y.Crashes, 0)
			// Rescheduling the running task has the same effect.
			equal(b, "reschedule", b.changeTask(store.Reschedule, name, store.At(at)), store.Following)
			end(y)
			y = b.claimOne(name)
			equal(b, "the record", string(y.Record), "another")
			// A Cancel after the Reschedule removes the task.
			equal(b, "reschedule", b.changeTask(store.Reschedule, name, store.At(at)), store.Following)
			equal(b, "cancel", b.changeTask(store.Cancel, name, store.When{}), store.Stopping)
			end(y)
			b.claimNone()
			b.requireAbsent(name)
		}
	}
	equal(b, "dead", b.stats().Dead, 0)
	equal(b, "retried and died", b.stats().Retried+b.stats().Died, 0)
}

func testCancel(b *storeTest) {
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Absent)
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Absent)
	b.schedule("k", b.after(0))
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Removed)
	b.claimNone()
	b.requireAbsent("k")
	b.schedule("k", b.after(10))
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Moved)
	x := b.claimOne("k")
	equal(b, "due", x.Due, b.getEntry("k").Due)
	// A task with attempts keeps its Due.
	b.require(b.report(x, store.Retry, b.after(10)), "the report was refused")
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Moved)
	y := b.claimOne("k")
	equal(b, "due", y.Due, x.Due)
	equal(b, "attempts", y.Attempts, 1)
	b.require(b.report(y, store.Failed, store.When{}), "the report was refused")
	// Only Requeue and Purge change dead letters, and they change no other tasks.
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Absent)
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Absent)
	equal(b, "purge", b.changeTask(store.Purge, "k", store.When{}), store.Removed)
	equal(b, "purge", b.changeTask(store.Purge, "k", store.When{}), store.Absent)
	b.schedule("k", b.after(0))
	equal(b, "purge", b.changeTask(store.Purge, "k", store.When{}), store.Absent)
	equal(b, "requeue", b.changeTask(store.Requeue, "k", b.after(0)), store.Absent)
	equal(b, "cancelled", b.stats().Cancelled, 1)
}

// A requeued run is independent of its repeating task: a command for either does not
// change the other.
func testRequeuedRuns(b *storeTest) {
	// createBoth creates the repeating task k, and a requeued run of k that is due at w.
	createBoth := func(w store.When) (id string) {
		b.Helper()
		b.schedule("k", b.after(0))
		x := b.claimOne("k")
		b.require(b.report(x, store.Failed, b.after(100)), "the report was refused")
		equal(b, "requeue", b.changeTask(store.Requeue, store.DeadID("k"), w), store.Moved)
		return store.SingleID("k", x.Due)
	}
	cancel := func(id string, want store.Outcome) {
		b.Helper()
		equal(b, "cancel", b.changeTask(store.Cancel, id, store.When{}), want)
	}

	id := createBoth(b.after(0))
	cancel("k", store.Removed)
	b.requireAbsent("k")
	b.require(b.report(b.claimOne(id), store.Done, store.When{}), "the report was refused")
	b.requireAbsent(id)

	id = createBoth(b.after(0))
	cancel(id, store.Removed)
	cancel(id, store.Absent)
	b.requireAbsent(id)
	b.claimNone()
	equal(b, "state", b.getEntry("k").State, store.Pending)
	cancel("k", store.Removed)

	// Both tasks may run at the same time. The later of two attempts has the larger
	// token.
	id = createBoth(b.after(90))
	at := b.getEntry("k").At
	equal(b, "reschedule", b.changeTask(store.Reschedule, id, b.after(0)), store.Moved)
	equal(b, "when the task is due", b.getEntry("k").At, at)
	x := b.claimOne(id)
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Moved)
	y := b.claimOne("k")
	b.require(y.Token > x.Token, "token %d came after %d", y.Token, x.Token)
	b.require(b.report(x, store.Retry, b.after(0)), "the report was refused")
	x = b.claimOne(id)
	equal(b, "attempts", x.Attempts, 1)
	b.require(x.Token > y.Token, "token %d came after %d", x.Token, y.Token)

	cancel("k", store.Stopping)
	equal(b, "extended", b.extend(x), store.Held)
	equal(b, "extended", b.extend(y), store.HeldStopping)
	equal(b, "reschedule", b.changeTask(store.Reschedule, id, b.after(0)), store.Following)
	equal(b, "receipt", b.sendReport(y, store.Retry, b.after(0)), store.Overtaken)
	equal(b, "receipt", b.sendReport(x, store.Failed, store.When{}), store.Overtaken)
	b.requireAbsent("k")
	x = b.claimOne(id)
	cancel(id, store.Stopping)
	equal(b, "extended", b.extend(x), store.HeldStopping)
	equal(b, "receipt", b.sendReport(x, store.Retry, b.after(0)), store.Overtaken)
	b.claimNone()
	b.requireAbsent(id)

	// Requeued runs with the same Due get different ids, even if no time passes.
	at = b.now() - 1
	for range 3 {
		b.schedule("k", store.At(at))
		b.require(b.report(b.claimOne("k"), store.Failed, b.after(90)), "the report was refused")
		equal(b, "requeue", b.changeTask(store.Requeue, store.DeadID("k"), b.after(90)), store.Moved)
		cancel("k", store.Removed)
	}
	equal(b, "pending", b.stats().Pending, 3)
	b.getEntry(store.SingleID("k", at))
}

// A rescheduled or requeued task gets a new generation, even if it is due at the same time
// as before. Further attempts at a run keep the generation.
func testGenerations(b *storeTest) {
	n := 0
	requestRun := func(op store.Op, id string, w store.When) store.Outcome {
		n++
		return b.sendCommand(store.Command{Op: op, Items: []store.Item{{ID: id, When: w, Generation: strings.Repeat(strconv.Itoa(n), store.GenerationSize)}}})[0]
	}
	wantRecord := func(n int) string {
		const first = "record of k"
		if n == 0 {
			return first
		}
		return first[:1] + strings.Repeat(strconv.Itoa(n), store.GenerationSize) + first[1+store.GenerationSize:]
	}
	nextRecord := func() string {
		nextTask := b.getEntry("k").NextTask
		b.require(nextTask != nil, "nothing follows with another generation")
		return string(nextTask.Record)
	}
	claimGeneration := func(id string, generation int) store.Claimed {
		b.Helper()
		x := b.claimOne(id)
		equal(b, "record", string(x.Record), wantRecord(generation))
		return x
	}
	at := b.now() - 5
	b.schedule("k", store.At(at))
	x := claimGeneration("k", 0)

	// All attempts at one run have the same generation.
	b.require(b.report(x, store.Retry, b.after(10)), "the report was refused")
	equal(b, "reschedule", requestRun(store.Reschedule, "k", b.after(0)), store.Moved)
	claimGeneration("k", 0)
	b.sleep(leaseUnits + 1)
	x = claimGeneration("k", 0)

	// If a task is rescheduled while it runs, only its next run gets the new generation.
	equal(b, "reschedule", requestRun(store.Reschedule, "k", store.At(x.Due)), store.Following)
	equal(b, "the running record", string(b.getEntry("k").Record), wantRecord(0))
	equal(b, "the next record", nextRecord(), wantRecord(2))
	equal(b, "reschedule", requestRun(store.Reschedule, "k", store.At(x.Due)), store.Following)
	equal(b, "the next record", nextRecord(), wantRecord(3))
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	y := claimGeneration("k", 3)
	equal(b, "due", y.Due, x.Due)
	b.require(b.report(y, store.HandBack, b.after(1)), "the report was refused")

	// A pending task without attempts gets a new generation too.
	equal(b, "reschedule", requestRun(store.Reschedule, "k", store.At(at)), store.Moved)
	equal(b, "due", b.getEntry("k").Due, at)
	x = claimGeneration("k", 4)
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")

	// A requeued dead letter gets a new generation too.
	equal(b, "requeue", requestRun(store.Requeue, "k", store.At(at)), store.Moved)
	equal(b, "due", b.getEntry("k").Due, at)
	x = claimGeneration("k", 5)

	// Rescheduling a Following task changes only the generation in NextTask's record.
	newTask := store.Task{ID: "k", Handler: "h", Record: []byte("vGENERAother")}
	outcomes := b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.At(at), Task: newTask}}})
	equal(b, "schedule", outcomes[0], store.Following)
	equal(b, "reschedule", requestRun(store.Reschedule, "k", store.At(at)), store.Following)
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	x = b.claimOne("k")
	equal(b, "record", string(x.Record), "v666666other")

	// A dead letter and its repeating task have separate generations.
	b.require(b.report(x, store.Failed, b.after(100)), "the report was refused")
	equal(b, "requeue", requestRun(store.Requeue, store.DeadID("k"), store.At(at)), store.Moved)
	y = b.claimOne(store.SingleID("k", at))
	equal(b, "record", string(y.Record), "v777777other")
	equal(b, "record", string(b.getEntry("k").Record), "v666666other")
	b.require(b.report(y, store.Done, store.When{}), "the report was refused")
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Removed)

	// A record that is too short for a generation does not change. The same is true if
	// the command has no generation.
	shortTask := store.Task{ID: "k", Handler: "h", Record: []byte("short!")}
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: b.after(0), Task: shortTask}}})
	x = b.claimOne("k")
	equal(b, "reschedule", requestRun(store.Reschedule, "k", b.after(0)), store.Following)
	b.require(b.getEntry("k").NextTask == nil, "%+v", b.getEntry("k"))
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	x = b.claimOne("k")
	equal(b, "record", string(x.Record), "short!")
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
	equal(b, "requeue", b.changeTask(store.Requeue, "k", b.after(0)), store.Moved)
	equal(b, "record", string(b.claimOne("k").Record), "short!")

	for _, c := range []store.Command{
		{Op: store.Reschedule, Items: []store.Item{{ID: "k", When: b.after(0), Generation: "1"}}},
		{Op: store.Cancel, Items: []store.Item{{ID: "k", Generation: "123456"}}},
	} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), c)
		b.requireError(err, store.ErrInvalid)
	}
}
