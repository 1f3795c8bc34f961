package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// maxWait is how long a test waits for an event that should come at once.
const maxWait = 10 * time.Second

// testWait checks that a sleeping worker is woken by each event that makes a task due.
func testWait(b *storeTest) {
	if b.Reopen != nil {
		b.reopen()
	}
	waiting, end := context.WithCancel(ctx)
	defer end()
	wokenShards := make(chan int, 1000)
	waitErr := make(chan error, 1)
	go func() { waitErr <- b.Store.Wait(waiting, []int{0}, func(shard int) { wokenShards <- shard }) }()
	// waitAndClaim waits until the worker is woken and gets a task.
	waitAndClaim := func(what string) store.Claimed {
		b.Helper()
		timeout := time.After(maxWait)
		for {
			select {
			case shard := <-wokenShards:
				equal(b, "shard", shard, 0)
			case <-timeout:
				b.Fatalf("the worker was not woken: %s", what)
			}
			if got := b.claim(10); len(got) == 1 {
				return got[0]
			}
		}
	}
	// goToSleep ignores the wake-ups so far, and checks that there is nothing to claim.
	goToSleep := func() {
		time.Sleep(time.Millisecond)
		for len(wokenShards) > 0 {
			<-wokenShards
		}
		b.claimNone()
	}
	goToSleep()
	b.schedule("far", b.after(10_000))
	goToSleep()
	b.schedule("k", b.after(0))
	x := waitAndClaim("a task that is due at once")
	goToSleep()
	b.require(b.report(x, store.Retry, b.after(0)), "the report was refused")
	x = waitAndClaim("a retry")
	goToSleep()
	b.require(b.report(x, store.Done, b.after(0)), "the report was refused")
	x = waitAndClaim("the next run")
	equal(b, "reschedule", b.changeTask(store.Reschedule, "k", b.after(0)), store.Following)
	goToSleep()
	b.require(b.report(x, store.HandBack, b.after(0)), "the report was refused")
	x = waitAndClaim("the next task")
	goToSleep()
	b.require(b.report(x, store.Failed, store.When{}), "the report was refused")
	equal(b, "requeue", b.changeTask(store.Requeue, "k", b.after(0)), store.Moved)
	x = waitAndClaim("the requeued task")
	goToSleep()
	equal(b, "reschedule", b.changeTask(store.Reschedule, "far", b.after(0)), store.Moved)
	waitAndClaim("the rescheduled task")
	b.sendCommand(store.Command{Op: store.Pause})
	b.require(b.report(x, store.HandBack, store.When{}), "the report was refused")
	goToSleep()
	b.sendCommand(store.Command{Op: store.Resume})
	waitAndClaim("resumed")

	end()
	select {
	case err := <-waitErr:
		b.requireError(err, context.Canceled)
	case <-time.After(maxWait):
		b.Fatal("Wait does not end with its context")
	}
}

// callsByName returns all methods of a store that can fail.
func (b *storeTest) callsByName(ctx context.Context, st store.Store) map[string]func() error {
	return map[string]func() error{
		"Now":    func() error { _, err := st.Now(ctx, 0); return err },
		"Get":    func() error { _, err := st.Get(ctx, 0, "k"); return err },
		"List":   func() error { _, err := st.List(ctx, 0, store.Filter{}, store.Cursor{}, 1); return err },
		"Stats":  func() error { _, err := st.Stats(ctx, 0); return err },
		"Check":  func() error { _, err := st.Check(ctx); return err },
		"Repair": func() error { _, err := st.Repair(ctx, 0); return err },
		"Wait":   func() error { return st.Wait(ctx, []int{0}, func(int) {}) },
		"Do":     func() error { _, err := st.Do(ctx, 0, b.stamp(), b.claimRound(1)); return err },
		"Change": func() error { _, err := st.Change(ctx, 0, b.stamp(), store.Command{Op: store.Pause}); return err },
	}
}

// Every call returns when its context ends. A command whose context had already ended
// has no effect.
func testContextEnds(b *storeTest) {
	b.prepareTasks()
	entriesBefore := b.allEntries()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range b.callsByName(ended, b.Store) {
		err := call()
		b.require(errors.Is(err, context.Canceled), "%s: the error is %v", name, err)
	}
	for _, c := range b.everyCommand() {
		_, err := b.Store.Change(ended, 0, b.stamp(), c)
		b.requireError(err, context.Canceled)
		b.requireError(err, store.ErrNotDone)
	}
	equal(b, "all entries", b.allEntries(), entriesBefore)

	// Wait returns even if its context ends while it calls wake.
	ending, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { _ = b.Store.Wait(ending, []int{0}, func(int) { <-ending.Done() }) })
	}
	time.Sleep(time.Millisecond)
	cancel()
	all.Wait()
}

// testContextEndsMeanwhile ends the contexts of calls while the store carries them out. The
// race detector then finds results that the store writes after the call has returned.
func testContextEndsMeanwhile(b *storeTest) {
	const calls, batch = 30, store.MaxBatch
	soon := func(n int) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Duration(n%30+1)*200*time.Microsecond)
	}
	for n := range calls {
		c := store.Command{Op: store.Schedule}
		for i := range batch {
			c.Items = append(c.Items, item(fmt.Sprint(n, " ", i), store.After(0)))
		}
		stamp := b.stamp()
		ending, cancel := soon(n)
		_, _ = b.Store.Change(ending, 0, stamp, c)
		cancel()
		outcomes, err := b.Store.Change(ctx, 0, stamp, c) // has its effect once in any case
		b.requireNoError(err)
		equal(b, "outcomes", outcomes, slices.Repeat([]store.Outcome{store.Created}, batch))
	}
	for n := range calls {
		round, stamp := b.emptyRound(), b.stamp()
		round.Lease = time.Minute
		round.Claim = store.Claim{Asked: true, Max: store.MaxClaim, Handlers: []string{"h"}}
		ending, cancel := soon(n)
		_, _ = b.Store.Do(ending, 0, stamp, round)
		cancel()
		answer, err := b.Store.Do(ctx, 0, stamp, round)
		b.requireNoError(err)
		b.require(len(answer.Tasks) == store.MaxClaim, "the claim got %d tasks", len(answer.Tasks))
	}
	stats, err := b.Store.Stats(ctx, 0)
	b.requireNoError(err)
	equal(b, "running", stats.Running, int64(calls*store.MaxClaim))
}
