package storetest

import (
	"errors"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// reopen closes the store and opens it again. It checks that the closed store returns
// errors.
func (b *storeTest) reopen() {
	b.Helper()
	oldStore, timeBefore := b.Store, b.now()
	b.Store = b.Reopen(b.T)
	b.require(b.now() >= timeBefore, "the store's time went back by %v", timeBefore.Sub(b.now()))
	if b.Store == oldStore {
		return // not closed
	}
	for name, call := range b.callsByName(ctx, oldStore) {
		err := call()
		b.require(errors.Is(err, store.ErrClosed), "%s after Close: the error is %v", name, err)
	}
}

// reopenWithClockStep sets the wall clock forward by step, or back, while the store is closed.
func (b *storeTest) reopenWithClockStep(step time.Duration) {
	b.Helper()
	b.SetWall(step)
	b.Store = b.Reopen(b.T)
}

// testReopened checks that a store that is opened again has everything that it has
// acknowledged.
func testReopened(b *storeTest) {
	if b.Reopen == nil {
		b.Skip("the store does not outlive its process")
	}
	b.reopen()
	b.reopen() // empty
	equal(b, "entries of a new store", len(b.allEntries()), 0)

	b.prepareTasks() // running, running2; dead, dead2; pending, pending2, pending3
	s := b.stamp()
	round := b.claimRound(3)
	for _, id := range []string{"held", "follows", "stops"} {
		b.schedule(id, b.after(0))
	}
	answer, err := b.Store.Do(ctx, 0, s, round)
	b.requireNoError(err)
	equal(b, "claimed", len(answer.Tasks), 3)
	replacementTask := task("follows")
	replacementTask.Record = []byte("another")
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: "follows", When: b.after(50), Task: replacementTask}}})
	equal(b, "cancel", b.changeTask(store.Cancel, "stops", store.When{}), store.Stopping)
	b.schedule("fails", b.after(0))
	x := b.claimOne("fails")
	b.require(b.report(x, store.Failed, b.after(70)), "the report was refused")
	b.schedule("tried", b.after(0))
	b.require(b.report(b.claimOne("tried"), store.Retry, b.after(60)), "the report was refused")
	// Send one command of each type, to repeat it when the store is open again.
	type answeredCommand struct {
		stamp    store.Stamp
		command  store.Command
		outcomes []store.Outcome
	}
	var sent []answeredCommand
	for _, c := range b.everyCommand() {
		x := answeredCommand{stamp: b.stamp(), command: c}
		x.outcomes, err = b.Store.Change(ctx, 0, x.stamp, c)
		b.requireNoError(err)
		sent = append(sent, x)
	}
	lateStamp := b.stamp()
	lateStamp.Until = b.now() - 1
	lateCommand := store.Command{Op: store.Schedule, Items: []store.Item{item("late", b.after(100))}}
	_, err = b.Store.Change(ctx, 0, lateStamp, lateCommand)
	b.requireError(err, store.ErrLate)
	b.sendCommand(store.Command{Op: store.Pause})
	b.schedule("while paused", b.after(0))
	before, numbers := b.allEntries(), b.stats()

	requireUnchanged := func() {
		b.Helper()
		equal(b, "all entries", b.allEntries(), before)
		st := b.stats()
		st.Late, st.Overdue, st.Unknown = numbers.Late, numbers.Overdue, numbers.Unknown
		equal(b, "the numbers", st, numbers)
	}
	for range 3 {
		b.reopen()
		requireUnchanged()
		b.claimNone() // the store is paused
	}
	for _, x := range sent {
		outcomes, err := b.Store.Change(ctx, 0, x.stamp, x.command)
		b.requireNoError(err)
		equal(b, "an answer once more", outcomes, x.outcomes)
		x.stamp.Number--
		_, err = b.Store.Change(ctx, 0, x.stamp, x.command)
		b.requireError(err, store.ErrStale)
	}
	_, err = b.Store.Change(ctx, 0, lateStamp, lateCommand)
	b.requireError(err, store.ErrLate)
	requireUnchanged()

	// The leases are still valid.
	again, err := b.Store.Do(ctx, 0, s, round)
	b.requireNoError(err)
	equal(b, "the tasks once more", withoutFollowing(again.Tasks), answer.Tasks)
	claimedByID := make(map[string]store.Claimed)
	for _, x := range answer.Tasks {
		claimedByID[x.ID] = x
	}
	equal(b, "extended", b.extend(claimedByID["held"]), store.Held)
	equal(b, "extended", b.extend(claimedByID["stops"]), store.HeldStopping)
	b.require(b.report(claimedByID["stops"], store.Retry, b.after(0)), "the report was refused")
	b.requireAbsent("stops")
	b.reopen()
	b.require(b.report(claimedByID["follows"], store.Done, store.When{}), "the report was refused")
	e := b.getEntry("follows")
	b.require(e.State == store.Pending && string(e.Record) == "another", "%+v", e)
	b.require(!b.report(x, store.Done, store.When{}), "a used token was accepted")

	// A new claim gets a token that was never used before.
	b.sendCommand(store.Command{Op: store.Resume})
	y := b.claimOne("while paused")
	for id, x := range claimedByID {
		b.require(y.Token > x.Token, "token %d came after %d, of %s", y.Token, x.Token, id)
	}
	b.require(b.report(y, store.Done, store.When{}), "the report was refused")

	// Expired leases end, and Wait returns when the store closes.
	waitErr := make(chan error, 1)
	go func(st store.Store) { waitErr <- st.Wait(ctx, []int{0}, func(int) {}) }(b.Store)
	oldStore := b.Store
	if b.reopen(); b.Store != oldStore {
		select {
		case err := <-waitErr:
			b.requireError(err, store.ErrClosed)
		case <-time.After(maxWait):
			b.Fatal("Wait does not end with the store")
		}
	}
	b.sleep(leaseUnits + 1)
	heldCrashed := false
	for _, x := range b.claim(100) {
		heldCrashed = heldCrashed || x.ID == "held" && x.Crashes == 1 && x.Token > y.Token
	}
	b.require(heldCrashed, "the lease of a crashed worker does not end")
}
