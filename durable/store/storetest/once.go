package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// everyCommand returns one command of each type, for the tasks of prepareTasks.
func (b *storeTest) everyCommand() []store.Command {
	newCommand := func(op store.Op, id string, w store.When) store.Command {
		x := store.Item{ID: id, When: w}
		if op == store.Schedule {
			x.Task = task(id)
		}
		return store.Command{Op: op, Items: []store.Item{x}}
	}
	return []store.Command{
		newCommand(store.Schedule, "new", b.after(50)),
		newCommand(store.Schedule, "pending", b.after(50)),
		newCommand(store.Schedule, "running", b.after(50)),
		newCommand(store.Reschedule, "pending2", b.after(60)),
		newCommand(store.Cancel, "pending3", store.When{}),
		newCommand(store.Cancel, "running2", store.When{}),
		newCommand(store.Cancel, "none", store.When{}),
		newCommand(store.Requeue, "dead", b.after(60)),
		newCommand(store.Purge, "dead2", store.When{}),
		{Op: store.Pause},
		{Op: store.Resume},
	}
}

func (b *storeTest) prepareTasks() {
	for _, id := range []string{"running", "running2", "dead", "dead2"} {
		b.schedule(id, b.after(0))
		if x := b.claimOne(id); id[0] == 'd' {
			b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
		}
	}
	for _, id := range []string{"pending", "pending2", "pending3"} {
		b.schedule(id, b.after(100))
	}
}

func (b *storeTest) allEntries() []store.Entry { return b.listAll(store.Filter{}, 100) }

func testRepeatedCommands(b *storeTest) {
	b.prepareTasks()
	for i, c := range b.everyCommand() {
		s := store.Stamp{Sender: "sender", Number: int64(10 * (i + 1))}
		first, err := b.Store.Change(ctx, 0, s, c)
		b.requireNoError(err)
		equal(b, fmt.Sprintf("number of outcomes of %+v", c), len(first), len(c.Items))
		entriesBefore := b.allEntries()
		if b.Advance != nil {
			b.Advance(time.Microsecond) // a delay would count from another moment
		}
		again, err := b.Store.Change(ctx, 0, s, c)
		b.requireNoError(err)
		equal(b, fmt.Sprintf("the answer to %+v once more", c), again, first)
		equal(b, fmt.Sprintf("all entries after %+v once more", c), b.allEntries(), entriesBefore)
		s.Number--
		_, err = b.Store.Change(ctx, 0, s, c)
		b.requireError(err, store.ErrStale)
		equal(b, "all entries after a refused command", b.allEntries(), entriesBefore)
	}
}

// A Pause that is sent a second time, after a Resume, does not undo the Resume. The same
// is true of a Resume that is sent a second time after a Pause.
func testRepeatedPause(b *storeTest) {
	for _, op := range []store.Op{store.Pause, store.Resume} {
		s, paused := b.stamp(), op == store.Pause
		for range 2 {
			outcomes, err := b.Store.Change(ctx, 0, s, store.Command{Op: op})
			b.requireNoError(err)
			equal(b, "number of outcomes", len(outcomes), 0)
		}
		equal(b, "paused", b.stats().Paused, paused)
		b.sendCommand(store.Command{Op: store.Pause + store.Resume - op})
		outcomes, err := b.Store.Change(ctx, 0, s, store.Command{Op: op})
		b.requireNoError(err)
		equal(b, "number of outcomes of the repeated command", len(outcomes), 0)
		equal(b, "paused after the repeated command", b.stats().Paused, !paused)
	}
}

func testRepeatedAfterRemoval(b *storeTest) {
	s := b.stamp()
	c := store.Command{Op: store.Schedule, Items: []store.Item{item("k", b.after(0))}}
	outcomes, err := b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes[0], store.Created)
	b.require(b.report(b.claimOne("k"), store.Done, store.When{}), "the report was refused")
	outcomes, err = b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes[0], store.Created)
	b.requireAbsent("k")

	s = b.stamp()
	c = store.Command{Op: store.Cancel, Items: []store.Item{{ID: "k"}}}
	b.schedule("k", b.after(0))
	outcomes, err = b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes[0], store.Removed)
	b.schedule("k", b.after(0))
	outcomes, err = b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes[0], store.Removed)
	equal(b, "state", b.getEntry("k").State, store.Pending)
}

func testRepeatedRounds(b *storeTest) {
	for i := range 4 {
		b.schedule(fmt.Sprint("k", i), b.after(0))
	}
	claimed := b.claim(2)
	equal(b, "claimed", len(claimed), 2)
	s := b.stamp()
	r := b.claimRound(2)
	r.Reports = []store.Report{{Lease: leaseOf(claimed[0]), End: store.Retry, Next: b.after(100), Due: claimed[0].Due, Text: "text"},
		{Lease: store.Lease{ID: "none", Token: 1}, End: store.Done}}
	r.Extend = []store.Lease{leaseOf(claimed[1])}
	first, err := b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "claimed", len(first.Tasks), 2)
	equal(b, "receipts", first.Receipts, []store.Receipt{store.Accepted, store.Refused})
	equal(b, "leases", first.Extensions, []store.Extension{store.Held})
	b.sleep(leaseUnits * 3 / 4)
	again, err := b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "the tasks once more", again.Tasks, first.Tasks)
	equal(b, "receipts once more", again.Receipts, first.Receipts)
	equal(b, "leases once more", again.Extensions, first.Extensions)
	equal(b, "claimed in all", b.stats().Claimed, 4)
	equal(b, "retried in all", b.stats().Retried, 1)
	// A repeated round starts new leases for the tasks that it claimed. It does not
	// extend the lease of claimed[1] again.
	b.sleep(leaseUnits * 3 / 4)
	equal(b, "crashes of the extended task", b.claimOne(claimed[1].ID).Crashes, 1)
	// A repeated claim omits tasks that have ended since.
	b.require(b.report(first.Tasks[0], store.Done, store.When{}), "the report was refused")
	again, err = b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "the tasks once more", again.Tasks, first.Tasks[1:])
	b.sleep(leaseUnits + 1)
	again, err = b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	equal(b, "the tasks when their leases are over", len(again.Tasks), 0)
	s.Number--
	_, err = b.Store.Do(ctx, 0, s, r)
	b.requireError(err, store.ErrStale)
}

func testRepeatedAfterADay(b *storeTest) {
	if b.Advance == nil {
		b.Skip("a day is too long")
	}
	s := b.stamp()
	c := store.Command{Op: store.Schedule, Items: []store.Item{item("k", store.After(0))}}
	_, err := b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	b.require(b.report(b.claimOne("k"), store.Done, store.When{}), "the report was refused")
	b.Advance(24*time.Hour - time.Second)
	for i := range 500 { // so that the store checks for senders to forget
		b.schedule(fmt.Sprint(i), store.After(time.Hour))
	}
	outcomes, err := b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes, []store.Outcome{store.Created})
	b.requireAbsent("k")
}

func testRepeatedConcurrently(b *storeTest) {
	for i := range 20 {
		s := b.stamp()
		id := fmt.Sprint(i)
		c := store.Command{Op: store.Schedule, Keep: store.KeepAny, Items: []store.Item{item(id, b.after(0))}}
		var all sync.WaitGroup
		var outcomes [8][]store.Outcome
		var errs [8]error
		for j := range outcomes {
			all.Go(func() { outcomes[j], errs[j] = b.Store.Change(ctx, 0, s, c) })
		}
		all.Wait()
		for j := range outcomes {
			b.requireNoError(errs[j])
			equal(b, "outcome", outcomes[j], []store.Outcome{store.Created})
		}
	}
	equal(b, "pending", b.stats().Pending, 20)
}

func testDeadlines(b *storeTest) {
	b.prepareTasks()
	b.schedule("due", store.At(1))
	entriesBefore := b.allEntries()
	withPastDeadline := func(s store.Stamp) store.Stamp {
		s.Until = b.now() - 1
		return s
	}
	for _, c := range b.everyCommand() {
		_, err := b.Store.Change(ctx, 0, withPastDeadline(b.stamp()), c)
		b.requireError(err, store.ErrLate)
		b.requireError(err, store.ErrNotDone)
	}
	_, err := b.Store.Do(ctx, 0, withPastDeadline(b.stamp()), b.claimRound(10))
	b.requireError(err, store.ErrLate)
	equal(b, "all entries", b.allEntries(), entriesBefore)
	b.require(!b.stats().Paused, "the store is paused")

	// A command that was carried out in time is answered again after its deadline.
	s := b.stamp()
	s.Until = b.now().Add(10 * b.unit)
	c := store.Command{Op: store.Schedule, Items: []store.Item{item("in time", b.after(100))}}
	_, err = b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	b.sleep(11)
	outcomes, err := b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	equal(b, "outcome", outcomes, []store.Outcome{store.Created})
	// A command that was refused because of its deadline is refused again.
	s = withPastDeadline(b.stamp())
	c = store.Command{Op: store.Schedule, Items: []store.Item{item("late", b.after(100))}}
	for range 2 {
		_, err = b.Store.Change(ctx, 0, s, c)
		b.requireError(err, store.ErrLate)
	}
	b.requireAbsent("late")
	// This is also true if its deadline is in the future again: the clock was set back.
	round := withPastDeadline(b.stamp())
	_, err = b.Store.Do(ctx, 0, round, b.claimRound(10))
	b.requireError(err, store.ErrLate)
	if b.SetWall != nil {
		b.SetWall(-1000 * b.unit)
	} else {
		s.Until, round.Until = 0, 0
	}
	_, err = b.Store.Change(ctx, 0, s, c)
	b.requireError(err, store.ErrLate)
	_, err = b.Store.Do(ctx, 0, round, b.claimRound(10))
	b.requireError(err, store.ErrLate)
	b.requireAbsent("late")
	s.Number, s.Until = s.Number+1, 0
	_, err = b.Store.Change(ctx, 0, s, c)
	b.requireNoError(err)
	b.getEntry("late")
}
