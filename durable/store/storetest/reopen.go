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
	if b.startJudge(); b.judge == nil {
		b.Skip("the model needs a clock that it can move")
	}
	b.reopen()
	b.reopen() // empty
	b.compare()

	b.prepareTasks() // running, running2; dead, dead2; pending, pending2, pending3
	for _, id := range []string{"held", "follows", "stops"} {
		b.schedule(id, b.after(0))
	}
	round := b.claimRound(3)
	sent := []sentCommand{{stamp: b.stamp(), round: &round}}
	answer, err := b.do(sent[0].stamp, round)
	b.requireNoError(err)
	equal(b, "claimed", len(answer.Tasks), 3)
	another := item("follows", b.after(50))
	another.Task.Record = []byte("another")
	b.scheduleItems([]store.Item{another})
	equal(b, "cancel", b.changeTask(store.Cancel, "stops", store.When{}), store.Stopping)
	b.schedule("tried", b.after(0))
	for _, end := range []store.End{store.Retry, store.Failed} {
		b.require(b.report(b.claimOne("tried"), end, b.after(0)), "the report was refused")
	}
	for _, c := range b.everyCommand() {
		x := sentCommand{stamp: b.stamp(), command: &c}
		sent = append(sent, x)
		b.send(x)
	}
	late := sentCommand{stamp: b.stamp(), command: &store.Command{Op: store.Schedule, Items: []store.Item{item("late", b.after(100))}}}
	late.stamp.Until = b.now() - 1
	b.send(late)
	b.sendCommand(store.Command{Op: store.Pause})
	b.schedule("while paused", b.after(0))

	for range 3 {
		b.reopen()
		b.compare()
		b.claimNone() // the store is paused
	}
	late.stamp.Until = 0
	b.send(late)
	for _, x := range sent {
		b.send(x)
		x.stamp.Number--
		b.send(x)
	}
	b.compare()

	// The leases are still valid, and a new claim gets a token that was never used before.
	byID := make(map[string]store.Claimed)
	for _, x := range answer.Tasks {
		byID[x.ID] = x
	}
	equal(b, "extended", b.extend(byID["held"]), store.Held)
	equal(b, "extended", b.extend(byID["stops"]), store.HeldStopping)
	b.require(b.report(byID["stops"], store.Retry, b.after(0)), "the report was refused")
	b.reopen()
	b.require(b.report(byID["follows"], store.Done, store.When{}), "the report was refused")
	b.sendCommand(store.Command{Op: store.Resume})
	got := b.claim(10)
	b.require(len(got) > 0 && got[0].Token > byID["held"].Token, "claimed %+v after %+v", got, byID)

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
	b.require(len(b.claim(100)) > len(got), "the leases of crashed workers do not end")
}
