package storetest

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

func testNeverEarly(b *storeTest) {
	b.schedule("after", b.after(10))
	b.schedule("at", store.At(b.now().Add(10*b.unit)))
	if b.Advance == nil {
		for {
			got := b.claim(10)
			now := b.now()
			for _, x := range got {
				b.require(x.Due <= now, "%s was claimed %v early", x.ID, x.Due.Sub(now))
			}
			if len(got) > 0 {
				return
			}
		}
	}
	b.claimNone()
	b.Advance(10*b.unit - time.Microsecond)
	b.claimNone()
	b.Advance(time.Microsecond)
	got := b.claim(10)
	b.require(len(got) == 2, "claimed %+v, want two tasks at the moment at which they are due", got)
	for _, x := range got {
		equal(b, "due", x.Due, b.now())
	}
}

func testDowntime(b *storeTest) {
	const n = 500
	var items []store.Item
	for i := range n {
		items = append(items, item(fmt.Sprint(i), store.After(time.Duration(i%50)*b.unit/10)))
	}
	b.scheduleItems(items)
	if b.Advance != nil {
		b.Advance(24 * time.Hour)
	} else {
		b.sleep(6)
	}
	equal(b, "overdue", b.stats().Overdue, n)
	seenIDs := make(map[string]bool)
	lastDue := store.Time(0)
	for range n / store.MaxClaim {
		a := b.sendRound(b.claimRound(store.MaxClaim))
		equal(b, "claimed", len(a.Tasks), store.MaxClaim)
		equal(b, "there is more", a.Next == 0, len(seenIDs)+len(a.Tasks) < n)
		for _, x := range a.Tasks {
			b.require(!seenIDs[x.ID], "%s came twice", x.ID)
			b.require(x.Due >= lastDue, "%s is older than the one before it", x.ID)
			seenIDs[x.ID], lastDue = true, x.Due
		}
	}
	b.claimNone()
}

// A single worker that follows Next claims every task in time.
func testNextClaimTime(b *storeTest) {
	// A store that may lose a wake-up limits Next even if nothing is pending.
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 && a.Next < leaseUnits*b.unit {
		b.Fatalf("Next is %v, but no task is there", a.Next)
	}
	b.schedule("k", b.after(10))
	a := b.sendRound(b.claimRound(1))
	b.require(a.Next >= 0 && a.Next <= 10*b.unit, "Next is %v, a task is due in 10 units", a.Next)
	for i := 0; ; i++ {
		b.require(i < 10, "Next has come ten times too early")
		if b.Advance != nil {
			b.Advance(a.Next)
		} else {
			time.Sleep(a.Next)
		}
		if a = b.sendRound(b.claimRound(1)); len(a.Tasks) > 0 {
			break
		}
	}
	// If only a running task is left, Next is the end of its lease.
	b.require(a.Next >= 0 && a.Next <= leaseUnits*b.unit, "Next is %v, a lease ends after %d units", a.Next, leaseUnits)
	b.schedule("one", b.after(0))
	b.schedule("two", b.after(0))
	a = b.sendRound(b.claimRound(1))
	b.require(len(a.Tasks) == 1 && a.Next == 0, "Next is %v, but a due task is left", a.Next)
}

func testPause(b *storeTest) {
	b.schedule("k", b.after(0))
	b.sendCommand(store.Command{Op: store.Pause})
	b.require(b.stats().Paused, "the store is not paused")
	equal(b, "paused", b.sendRound(b.claimRound(10)).Paused, true)
	b.claimNone()
	b.schedule("later", b.after(0))
	b.sendCommand(store.Command{Op: store.Pause})
	b.claimNone()
	b.sendCommand(store.Command{Op: store.Resume})
	b.require(!b.stats().Paused, "the store is still paused")
	a := b.sendRound(b.claimRound(10))
	runningTasks := a.Tasks
	equal(b, "claimed", len(runningTasks), 2)
	equal(b, "paused", a.Paused, false)
	b.sendCommand(store.Command{Op: store.Pause})
	b.require(b.report(runningTasks[0], store.Done, store.When{}), "a report was refused while the store is paused")
	equal(b, "extended", b.extend(runningTasks[1]), store.Held)
}

// Due times follow the wall clock. Setting the clock ends no lease, and extends a lease at
// most by its duration.
func testSettingTheClock(b *storeTest) {
	if b.SetWall == nil {
		b.Skip("the store's time does not follow the wall clock")
	}
	var heldTasks []store.Claimed
	for i := range 100 {
		b.schedule(fmt.Sprint("held", i), b.after(0))
	}
	heldTasks = b.claim(100)
	for i, step := range []time.Duration{time.Hour, time.Hour, -time.Hour, time.Hour, -2 * time.Hour} {
		at := b.now().Add(time.Hour)
		id := fmt.Sprint("at", i)
		b.schedule(id, store.At(at))
		timeBefore := b.now()
		b.SetWall(step)
		equal(b, "the step", b.now().Sub(timeBefore), step)
		got := b.claim(10)
		if step < 0 {
			equal(b, "claimed when the clock was set back", len(got), 0)
			b.SetWall(at.Sub(b.now()) - time.Microsecond)
			b.claimNone()
			b.Advance(time.Microsecond)
			got = b.claim(10)
		}
		b.require(len(got) == 1 && got[0].ID == id && got[0].Due <= b.now(), "claimed %+v, want %s", got, id)
		b.require(b.report(got[0], store.Done, store.When{}), "the report was refused")
		b.Advance((leaseUnits - 1) * b.unit)
		if b.Reopen != nil {
			b.reopenWithClockStep(-time.Hour)
			b.Advance((leaseUnits - 1) * b.unit)
		}
		st := b.stats()
		equal(b, "running, crashed", []int64{st.Running, st.Crashed}, []int64{100, 0})
		for _, x := range heldTasks {
			equal(b, "extended", b.extend(x), store.Held)
		}
	}
	b.Advance((leaseUnits + 1) * b.unit)
	equal(b, "expired leases", len(b.claim(100)), 100)

	// A task is no longer overdue if the clock is set back.
	b.schedule("overdue", b.after(0))
	equal(b, "overdue", b.stats().Overdue, 1)
	b.SetWall(-time.Hour)
	equal(b, "overdue", b.stats().Overdue, 0)
	b.claimNone()
	b.SetWall(time.Hour)
	b.claimOne("overdue")
}
