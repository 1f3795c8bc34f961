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
	senders := 500
	if b.isBrief() {
		senders = 150
	}
	for i := range senders { // so that the store checks for senders to forget
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
