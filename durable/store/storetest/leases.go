package storetest

import (
	"fmt"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

func testLease(b *storeTest) {
	b.schedule("k", b.after(0))
	x := b.claimOne("k")
	equal(b, "record", string(x.Record), "record of k")
	equal(b, "attempts and crashes", x.Attempts+x.Crashes, 0)
	e := b.getEntry("k")
	equal(b, "state", e.State, store.Running)
	equal(b, "token", e.Token, x.Token)
	equal(b, "attempts", e.Attempts, 1)
	b.claimNone()
	// While the lease is extended, no other claim gets the task.
	for range 3 {
		b.sleep(leaseUnits * 3 / 4)
		equal(b, "extended", b.extend(x), store.Held)
		b.claimNone()
	}
	equal(b, "extended by another token", b.extend(store.Claimed{Task: x.Task, Token: x.Token + 1}), store.Lost)
	b.sleep(leaseUnits + 1)
	y := b.claimOne("k")
	equal(b, "attempts", y.Attempts, 1)
	equal(b, "crashes", y.Crashes, 1)
	equal(b, "due", y.Due, x.Due)
	equal(b, "crashed", b.stats().Crashed, 1)
	e = b.getEntry("k")
	b.require(len(e.Failures) == 1 && e.Failures[0].Attempt == 1 && e.Failures[0].Text == store.TextCrashed,
		"failures %+v", e.Failures)
}

func testTokensGrow(b *storeTest) {
	// Tokens are at least the store's time, so that they grow when tasks move to another
	// store.
	lastToken := int64(b.now()) - 1
	for i := range 20 {
		for j := range 3 {
			b.schedule(fmt.Sprint(i, " ", j), b.after(0))
		}
		for _, x := range b.claim(10) {
			b.require(x.Token > lastToken, "token %d came after %d", x.Token, lastToken)
			lastToken = x.Token
			b.require(b.report(x, store.Done, store.When{}), "the report was refused")
		}
		if b.Reopen != nil && i%5 == 0 {
			b.reopen()
		}
	}
}

// A run is a suspect from its third crash on, or from its last but one, and dead after its
// last.
func testPoison(b *storeTest) {
	for _, x := range []struct{ maxCrashes, suspectFrom int }{{1, 1}, {2, 1}, {3, 2}, {5, 3}, {10, 3}} {
		key := fmt.Sprint("k", x.maxCrashes)
		b.schedule(key, b.after(0))
		r := b.claimRound(1)
		r.MaxCrashes = x.maxCrashes
		for crashes := range x.maxCrashes {
			got := b.sendRound(r).Tasks
			b.require(len(got) == 1 && got[0].ID == key && got[0].Crashes == crashes, "claimed %+v after %d of %d crashes", got, crashes, x.maxCrashes)
			equal(b, fmt.Sprintf("suspect after %d of %d crashes", crashes, x.maxCrashes), got[0].Suspect, crashes >= x.suspectFrom)
			equal(b, "suspect in the entry", b.getEntry(key).Suspect, crashes >= x.suspectFrom)
			b.sleep(leaseUnits + 1)
		}
		equal(b, "claimed at the end", len(b.sendRound(r).Tasks), 0)
		e := b.getEntry(key)
		equal(b, "state", e.State, store.Dead)
		equal(b, "suspect in the dead letter", e.Suspect, false)
		equal(b, "crashes", e.Crashes, x.maxCrashes)
		equal(b, "attempts", e.Attempts, x.maxCrashes)
		equal(b, "the last failure", e.Failures[len(e.Failures)-1].Text, store.TextPoison)
	}
	equal(b, "died", b.stats().Died, 5)
}

// A suspect stays one until its run ends.
func testSuspectStays(b *storeTest) {
	crash := func() store.Claimed {
		b.Helper()
		for range 2 {
			b.claimOne("k")
			b.sleep(leaseUnits + 1)
		}
		return b.claimOne("k")
	}
	b.schedule("k", b.after(0))
	x := crash()
	b.require(x.Suspect, "after two of three crashes the run is no suspect")
	b.require(b.report(x, store.HandBack, store.When{}), "the report was refused")
	x = b.claimOne("k")
	b.require(x.Suspect, "the run is no suspect after it was handed back")
	b.require(b.report(x, store.Retry, b.after(0)), "the report was refused")
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Moved)
	x = b.claimOne("k")
	b.require(x.Suspect, "the run is no suspect after a retry")
	equal(b, "cancel", b.changeTask(store.Cancel, "k", store.When{}), store.Stopping)
	b.require(b.getEntry("k").Suspect, "the run is no suspect while it stops")
	equal(b, "schedule", b.changeTask(store.Schedule, "k", b.after(0)), store.Following)
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	b.require(!b.claimOne("k").Suspect, "the next run is a suspect")
}

// repeatingTask returns a task whose record says that it repeats.
func repeatingTask(id string) store.Task {
	t := task(id)
	t.Record = append([]byte{1, 2, 3, 4, 5, 6, 7, 0x08 | 0x21}, id...)
	return t
}

// After too many crashes of a repeating task, the store makes no dead letter. It gives the
// number of crashes to the next worker, which decides.
func testPoisonedRepeatingTask(b *storeTest) {
	scheduledTask := task("scheduled")
	scheduledTask.Schedule = "daily"
	for _, t := range []store.Task{repeatingTask("every"), scheduledTask} {
		repeatingItem := store.Item{ID: t.ID, When: b.after(0), Task: t}
		equal(b, "outcome", b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{repeatingItem}})[0], store.Created)
		claim := func() store.Claimed {
			b.Helper()
			r := b.claimRound(10)
			r.Claim.Schedules = []string{"daily"}
			got := b.sendRound(r).Tasks
			b.require(len(got) == 1 && got[0].ID == t.ID, "claimed %+v, want %s alone", got, t.ID)
			return got[0]
		}
		for i := range 5 {
			equal(b, "crashes", claim().Crashes, i)
			b.sleep(leaseUnits + 1)
		}
		x := claim()
		equal(b, "crashes", x.Crashes, 5)
		equal(b, "the last failure", b.getEntry(t.ID).Failures[4].Text, store.TextCrashed)
		b.require(b.report(x, store.Dropped, b.after(1000)), "the report was refused")
		e := b.getEntry(t.ID)
		b.require(e.State == store.Pending && e.Attempts+e.Crashes+len(e.Failures) == 0, "the task is %+v", e)
		deadRun := b.getEntry(store.DeadID(t.ID))
		b.require(deadRun.State == store.Dead && deadRun.Runs == 1 && deadRun.Attempts == 5 && deadRun.Crashes == 5, "the run is %+v", deadRun)

		// A requeued run does not repeat, so the store makes it a dead letter.
		equal(b, "requeue", b.changeTask(store.Requeue, deadRun.ID, b.after(0)), store.Moved)
		requeuedID := store.SingleID(t.ID, deadRun.Due)
		for range 3 {
			b.claimOne(requeuedID)
			b.sleep(leaseUnits + 1)
		}
		b.claimNone()
		equal(b, "state", b.getEntry(requeuedID).State, store.Dead)
	}
	equal(b, "died", b.stats().Died, 4)

	// A record of another version, or one that is too short, does not make a task
	// repeat.
	for i, record := range [][]byte{{3, 2, 3, 4, 5, 6, 7, 0xff}, {1, 2, 3, 4, 5, 6, 7, 0xf7}, {1, 8, 8, 8, 8, 8, 8}, {1}, nil} {
		t := task(fmt.Sprint(i))
		t.Record = record
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: t.ID, When: b.after(0), Task: t}}})
		for range 3 {
			b.claimOne(t.ID)
			b.sleep(leaseUnits + 1)
		}
		b.claimNone()
		equal(b, "state of "+t.ID, b.getEntry(t.ID).State, store.Dead)
	}
}

// The store refuses what a worker reports after its lease has expired.
func testReportAfterExpiry(b *storeTest) {
	b.schedule("k", b.after(0))
	x := b.claimOne("k")
	b.sleep(leaseUnits + 1)
	y := b.claimOne("k")
	b.require(y.Token > x.Token, "token %d came after %d", y.Token, x.Token)
	equal(b, "extended", b.extend(x), store.Lost)
	entryBefore := b.getEntry("k")
	for _, end := range []store.End{store.Done, store.Retry, store.Failed, store.HandBack, store.Dropped} {
		b.require(!b.report(x, end, b.after(0)), "End %d with an old token was accepted", end)
	}
	equal(b, "the task", b.getEntry("k"), entryBefore)
	equal(b, "refused", b.stats().Refused, 5)
	b.require(b.report(y, store.Done, store.When{}), "the report was refused")
	b.require(!b.report(y, store.Done, store.When{}), "a second report was accepted")
	b.requireAbsent("k")
}

func testReports(b *storeTest) {
	b.schedule("k", b.after(0))
	x := b.claimOne("k")
	b.require(b.report(x, store.Retry, b.after(10)), "the report was refused")
	e := b.getEntry("k")
	equal(b, "state", e.State, store.Pending)
	equal(b, "attempts", e.Attempts, 1)
	equal(b, "due", e.Due, x.Due)
	b.require(e.At > e.Due, "the next attempt is not later than the first")
	b.claimNone()
	b.sleep(11)
	y := b.claimOne("k")
	equal(b, "attempts", y.Attempts, 1)
	equal(b, "due", y.Due, x.Due)

	b.require(b.report(y, store.HandBack, store.When{}), "the report was refused")
	y = b.claimOne("k")
	equal(b, "attempts after it was handed back", y.Attempts, 1)
	b.require(b.report(y, store.HandBack, b.after(10)), "the report was refused")
	b.claimNone()
	b.sleep(11)
	y = b.claimOne("k")
	equal(b, "attempts after it was handed back", y.Attempts, 1)
	equal(b, "due", y.Due, x.Due)

	b.require(b.report(y, store.Failed, store.When{}), "the report was refused")
	e = b.getEntry("k")
	equal(b, "state", e.State, store.Dead)
	equal(b, "attempts", e.Attempts, 2)
	equal(b, "failures", len(e.Failures), 3)
	b.claimNone()
	equal(b, "requeue", b.changeTask(store.Requeue, "k", b.after(0)), store.Moved)
	y = b.claimOne("k")
	equal(b, "attempts after it was requeued", y.Attempts, 0)
	equal(b, "failures", len(b.getEntry("k").Failures), 0)
	b.require(b.report(y, store.Dropped, store.When{}), "the report was refused")
	e = b.getEntry("k")
	equal(b, "state", e.State, store.Dead)
	equal(b, "attempts", e.Attempts, 0)
	equal(b, "the failed attempt", e.Failures[0].Attempt, 0)
	equal(b, "requeue", b.changeTask(store.Requeue, "k", b.after(0)), store.Moved)
	y = b.claimOne("k")
	b.require(b.report(y, store.Done, store.When{}), "the report was refused")
	b.requireAbsent("k")
	equal(b, "counters", b.stats().Counters,
		store.Counters{Claimed: 6, Done: 1, Retried: 1, Died: 2, Released: 2})
}

func testStoredFailures(b *storeTest) {
	b.schedule("k", b.after(0))
	longText := strings.Repeat("ü", store.MaxText)
	for i := range store.MaxFailures + 3 {
		x := b.claimOne("k")
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(x), End: store.Retry, Next: b.after(0), Due: x.Due, Text: fmt.Sprint(i, " ", longText)}}
		equal(b, "receipt", b.sendRound(r).Receipts[0], store.Accepted)
	}
	f := b.getEntry("k").Failures
	equal(b, "failures kept", len(f), store.MaxFailures)
	for i, x := range f {
		equal(b, "attempt", x.Attempt, i+4)
		b.require(strings.HasPrefix(x.Text, fmt.Sprint(i+3, " ")), "text %q", x.Text)
		b.require(len(x.Text) <= store.MaxText && strings.ToValidUTF8(x.Text, "") == x.Text, "a text of %d bytes", len(x.Text))
	}
}

// A task that is handed back again and again says how often, and why the last time, and
// keeps the failures of its attempts.
func testHandBacks(b *storeTest) {
	b.schedule("k", b.after(0))
	handBack := func(text string) {
		b.Helper()
		x := b.claimOne("k")
		r := b.emptyRound()
		r.Reports = []store.Report{{Lease: leaseOf(x), End: store.HandBack, Next: b.after(0), Due: x.Due, Text: text}}
		equal(b, "receipt", b.sendRound(r).Receipts[0], store.Accepted)
	}
	failures := func() (texts []string, handBacks []int) {
		b.Helper()
		e := b.getEntry("k")
		for _, f := range e.Failures {
			texts, handBacks = append(texts, f.Text), append(handBacks, f.HandBacks)
		}
		return texts, handBacks
	}
	handBack("")
	equal(b, "failures after a hand-back without a text", len(b.getEntry("k").Failures), 0)
	handBack("first 1 2 3: reason")
	handBack("second reason")
	b.require(b.report(b.claimOne("k"), store.Retry, b.after(0)), "the report was refused")
	texts, handBacks := failures()
	equal(b, "texts", texts, []string{"second reason", "text"})
	equal(b, "hand-backs", handBacks, []int{2, 0})
	for i := range store.MaxFailures + 1 {
		handBack(fmt.Sprint("reason ", i))
	}
	texts, handBacks = failures()
	equal(b, "texts", texts, []string{"text", fmt.Sprint("reason ", store.MaxFailures)})
	equal(b, "hand-backs", handBacks, []int{0, store.MaxFailures + 3})
	e := b.getEntry("k")
	equal(b, "attempts and crashes", []int{e.Attempts, e.Crashes}, []int{1, 0})
	equal(b, "the listed entry", b.allEntries()[0], e)

	// The next run knows nothing of it.
	b.require(b.report(b.claimOne("k"), store.Done, b.after(0)), "the report was refused")
	equal(b, "failures of the next run", len(b.getEntry("k").Failures), 0)
}

// A repeating task continues after a failed run, and all its failed runs share one dead
// letter.
func testRepeating(b *storeTest) {
	b.schedule("k", b.after(0))
	x := b.claimOne("k")
	nextDue := b.now() - 1
	b.require(b.report(x, store.Done, store.At(nextDue)), "the report was refused")
	x = b.claimOne("k")
	equal(b, "due", x.Due, nextDue)
	equal(b, "attempts", x.Attempts, 0)
	id := store.DeadID("k")
	for i := range store.MaxFailures + 2 { // more than are kept
		next := b.now() - 1
		due := x.Due
		b.require(b.report(x, store.Failed, store.At(next)), "the report was refused")
		e := b.getEntry(id)
		equal(b, "state", e.State, store.Dead)
		equal(b, "runs", e.Runs, i+1)
		equal(b, "due", e.Due, due)
		equal(b, "failures", len(e.Failures), min(i+1, store.MaxFailures))
		equal(b, "record", string(e.Record), "record of k")
		x = b.claimOne("k")
		equal(b, "due", x.Due, next)
		equal(b, "attempts", x.Attempts, 0)
	}
	equal(b, "dead", b.stats().Dead, 1)
	due := b.getEntry(id).Due
	equal(b, "requeue", b.changeTask(store.Requeue, id, b.after(0)), store.Moved)
	b.requireAbsent(id)
	requeuedID := b.claimOne(store.SingleID("k", due))
	equal(b, "record", string(requeuedID.Record), "record of k")
	b.require(b.report(requeuedID, store.Failed, store.When{}), "the report was refused")
	equal(b, "purge", b.changeTask(store.Purge, requeuedID.ID, store.When{}), store.Removed)
	b.requireAbsent(requeuedID.ID)
	equal(b, "state", b.getEntry("k").State, store.Running)
}
