package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// scheduleMany schedules n tasks of a handler, one microsecond apart.
func (b *storeTest) scheduleMany(handler string, n int, first store.Time) {
	b.Helper()
	b.scheduleTasks(handler, handler, "", n, first)
}

// claimWith claims tasks of the handlers a, b and c, limited by rooms.
func (b *storeTest) claimWith(n, spare int, rooms ...store.Room) (ids []string, next time.Duration) {
	b.Helper()
	r := b.claimRound(n)
	r.Claim.Handlers, r.Claim.Rooms, r.Claim.Spare, r.Claim.Full = []string{"a", "b", "c"}, rooms, spare, true
	a := b.sendRound(r)
	return idsOf(a.Tasks), a.Next
}

// If a claim has no more room for one handler, it still gets tasks of the others.
func testRooms(b *storeTest) {
	now := b.now()
	b.scheduleMany("a", 20, now-1000)
	b.scheduleMany("b", 3, now-100)
	got, next := b.claimWith(8, 0, store.Room{Handler: 0, Most: 3})
	equal(b, "claimed", got, []string{"a0", "a1", "a2", "b0", "b1", "b2"})
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, next = b.claimWith(8, 0, store.Room{Handler: 0})
	equal(b, "claimed", len(got), 0)
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, next = b.claimWith(2, 0, store.Room{Handler: 0, Most: 2}, store.Room{Handler: 1})
	equal(b, "claimed", got, []string{"a3", "a4"})
	equal(b, "Next, if the worker may have more room", next, 0)
	// Next ignores tasks for which the claim has no room.
	b.changeTask(store.Schedule, "later", b.after(10*leaseUnits))
	_, next = b.claimWith(8, 0, store.Room{Handler: 0})
	b.require(next > 0, "Next is %v", next)
}

// The Spare tasks of a claim are of handlers that have nothing to do, one for each.
func testSpare(b *storeTest) {
	now := b.now()
	b.scheduleMany("a", 20, now-1000)
	b.scheduleMany("b", 20, now-500)
	b.scheduleMany("c", 20, now-100)
	got, next := b.claimWith(6, 3)
	equal(b, "claimed", got, []string{"a0", "a1", "a2", "b0", "c0"})
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, _ = b.claimWith(6, 2, store.Room{Handler: 0, Most: 2}, store.Room{Handler: 1, Most: 6, Busy: true})
	equal(b, "claimed", got, []string{"a3", "a4", "b1", "b2", "c1"})
	got, _ = b.claimWith(3, 3, store.Room{Handler: 1, Most: 3, Busy: true})
	equal(b, "claimed", got, []string{"a5", "c2"})
	got, next = b.claimWith(2, 2, store.Room{Handler: 1, Most: 2, Busy: true})
	equal(b, "claimed", got, []string{"a6", "c3"})
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, next = b.claimWith(1, 1, store.Room{Handler: 0, Most: 1, Busy: true})
	equal(b, "claimed", got, []string{"b3"})
	equal(b, "Next, if another handler has nothing to do", next, 0)
}

// Handlers that a worker lacks, however many have due tasks, do not delay its own.
func testManyNames(b *storeTest) {
	const names = 1100 // more than the thousand that a claim of redisstore looks at
	last := fmt.Sprint("handler", names-1)
	var items []store.Item
	for i := range names {
		t := task(fmt.Sprint("other", i))
		t.Handler = fmt.Sprint("handler", i)
		items = append(items, store.Item{ID: t.ID, Task: t, When: store.At(b.now() - 1000)})
	}
	b.scheduleItems(items)
	b.schedule("k", b.after(0))
	b.require(slices.ContainsFunc(b.claimUntilEmpty("h"), func(x store.Claimed) bool { return x.ID == "k" }), "k was not claimed")
	equal(b, "unknown", b.stats().Unknown, int64(names))
	equal(b, "pending", b.stats().Pending, int64(names))
	equal(b, "listed", len(b.listAll(store.Filter{State: store.Pending}, store.MaxPage)), names)

	// A worker that has the names finds them, and the first one still finds its own.
	equal(b, "claimed by another worker", len(b.claimUntilEmpty("handler7", last)), 2)
	b.schedule("l", b.after(0))
	t := task("again")
	t.Handler = "handler7"
	b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: t.ID, Task: t, When: b.after(0)}}})
	equal(b, "claimed by the first worker", len(b.claimUntilEmpty("h")), 1)
	equal(b, "claimed by the other worker", len(b.claimUntilEmpty("handler7", last)), 1)
	if b.Reopen != nil {
		b.reopen()
	}
	all := make([]string, names)
	for i := range all {
		all[i] = fmt.Sprint("handler", i)
	}
	equal(b, "claimed by a third worker", len(b.claimUntilEmpty(all...)), names-2)
}

// claimUntilEmpty claims tasks of handlers as one worker, until it must wait.
func (b *storeTest) claimUntilEmpty(handlers ...string) (got []store.Claimed) {
	b.Helper()
	for {
		r := b.claimRound(store.MaxClaim)
		r.Claim.Handlers = handlers
		a := b.sendRound(r)
		got = append(got, a.Tasks...)
		if a.Next != 0 {
			return got
		}
	}
}

// claimSuspects claims n tasks, with at most max suspects among them.
func (b *storeTest) claimSuspects(n, max int, only bool) (ids []string, a store.Answer) {
	b.Helper()
	r := b.claimRound(n)
	r.MaxCrashes, r.Claim.Suspects, r.Claim.OnlySuspect = 5, max, only
	a = b.sendRound(r)
	ids = idsOf(a.Tasks)
	slices.Sort(ids)
	return ids, a
}

// A claim gets as many suspects as its Suspects says. Other tasks do not wait for them.
func testSuspects(b *storeTest) {
	for i := range 4 {
		b.schedule(fmt.Sprint("s", i), b.after(0))
	}
	r := b.claimRound(4)
	r.MaxCrashes = 5
	for crashes := range 4 {
		a := b.sendRound(r)
		equal(b, "claimed", len(a.Tasks), 4)
		if crashes < 3 {
			b.sleep(leaseUnits + 1)
			continue
		}
		for _, x := range a.Tasks {
			b.require(x.Suspect, "%+v is no suspect", x)
			b.require(b.report(x, store.HandBack, store.When{}), "the report was refused")
		}
	}
	b.sleep(1)
	b.schedule("k0", b.after(0))
	b.schedule("k1", b.after(0))
	got, a := b.claimSuspects(1, 0, true)
	equal(b, "claimed", len(got), 1)
	b.require(got[0][0] == 'k' && a.Next == 0, "claimed %v, a suspect, or Next is %v", got, a.Next)
	got, a = b.claimSuspects(10, 1, true)
	b.require(len(got) == 2 && got[0][0] == 'k' && got[1][0] == 's', "claimed %v", got)
	b.require(a.Next != 0 && a.Suspects == store.SomeWait, "Next is %v and Suspects %v, but other suspects wait", a.Next, a.Suspects)
	got, a = b.claimSuspects(10, 0, false)
	b.require(len(got) == 0 && a.Suspects == store.SomeWait, "claimed %v, and Suspects is %v", got, a.Suspects)
	got, a = b.claimSuspects(10, 5, false)
	b.require(len(got) == 3 && a.Suspects == store.NoneWaits, "claimed %v, and Suspects is %v", got, a.Suspects)
}

// A claim gets a suspect whose next crash makes it a dead letter only as its only suspect,
// and only for a worker that runs none. Other suspects do not overtake it.
func testLastSuspects(b *storeTest) {
	b.schedule("last", b.after(0))
	r := b.claimRound(1)
	r.MaxCrashes = 5
	for range 4 {
		equal(b, "claimed", len(b.sendRound(r).Tasks), 1)
		b.sleep(leaseUnits + 1)
	}
	b.sendRound(r) // ends the lease and takes the task
	equal(b, "extended", b.extend(store.Claimed{Task: task("last"), Token: b.getEntry("last").Token}), store.Held)
	for i := range 3 {
		b.schedule(fmt.Sprint("s", i), b.after(0))
	}
	handBack := func(id string) {
		b.Helper()
		e := b.getEntry(id)
		b.require(b.report(store.Claimed{Task: e.Task, Token: e.Token, Due: e.Due}, store.HandBack, store.When{}), "the report was refused")
	}
	handBack("last")
	equal(b, "suspect", b.getEntry("last").Suspect, true)
	got, _ := b.claimSuspects(10, 0, true)
	equal(b, "claimed", got, []string{"s0", "s1", "s2"})
	for range 2 {
		b.sleep(leaseUnits + 1)
		got, _ = b.claimSuspects(10, 0, true)
		equal(b, "claimed", got, []string{"s0", "s1", "s2"})
	}
	b.sleep(leaseUnits + 1)
	// All are suspects now, and the last one is due first.
	got, a := b.claimSuspects(10, 5, false)
	b.require(len(got) == 0 && a.Suspects == store.LastWaits && a.Next != 0, "claimed %v, and the answer is %+v", got, a)
	b.schedule("k", b.after(0))
	got, a = b.claimSuspects(10, 5, true)
	equal(b, "claimed", got, []string{"k", "last"})
	equal(b, "suspects", a.Suspects, store.SomeWait)
	got, a = b.claimSuspects(10, 2, false)
	b.require(len(got) == 2 && a.Suspects == store.SomeWait, "claimed %v, and the answer is %+v", got, a)
}

// The functions below are the part of the model that decides which tasks a claim may get.

// addRandomRooms sets random rooms for a claim.
func (m *modelTest) addRandomRooms(c *store.Claim) {
	c.Suspects, c.OnlySuspect = m.rng.IntN(c.Max+1), m.rng.IntN(3) > 0
	if m.rng.IntN(2) == 0 {
		return
	}
	if m.rng.IntN(2) == 0 {
		c.Spare = m.rng.IntN(c.Max + 1)
	}
	for i := range c.Handlers {
		if m.rng.IntN(3) > 0 {
			c.Rooms = append(c.Rooms, store.Room{Handler: i, Most: m.rng.IntN(c.Max + 1), Busy: m.rng.IntN(2) == 0})
		}
	}
}

// A modelRoom counts how many more tasks a claim may get.
type modelRoom struct {
	mostByHandler   map[string]int
	busy            map[string]bool // handlers that get none of the spare tasks
	ordinary        int             // how many more tasks may come before the spare ones
	suspectsAllowed int
	onlySuspect     bool // a last suspect may come, as the only one
	suspectRefused  bool // no other suspect may come
	unsure          bool // perhaps a suspect was refused: several were due at the same time
	maxCrashes      int
	groupRoom       func(t *modelTask) int // how many tasks of the task's group the claim may get
	takenByGroup    map[modelGroup]int
}

func roomOf(r *store.Round) *modelRoom {
	const unlimited = 1 << 30
	c := &r.Claim
	x := &modelRoom{mostByHandler: make(map[string]int), busy: make(map[string]bool), ordinary: unlimited,
		suspectsAllowed: c.Suspects, onlySuspect: c.OnlySuspect && c.Suspects > 0, maxCrashes: r.MaxCrashes, takenByGroup: make(map[modelGroup]int)}
	if c.Spare > 0 {
		x.ordinary = c.Max - c.Spare
	}
	for _, h := range c.Handlers {
		x.mostByHandler[h] = unlimited
	}
	for _, room := range c.Rooms {
		h := c.Handlers[room.Handler]
		x.busy[h] = room.Busy
		if room.Most < c.Max {
			x.mostByHandler[h] = room.Most
		}
	}
	return x
}

func (x *modelRoom) allows(t *modelTask) bool {
	switch isLast := t.Crashes+1 >= x.maxCrashes; {
	case !t.Suspect:
		return true
	case x.suspectRefused:
		return false
	case isLast:
		return x.onlySuspect
	}
	return x.suspectsAllowed > 0
}

// oldestDue returns the tasks that may be claimed next: the oldest suspects and the
// oldest others, if they are allowed. certain says that at least one of them must be
// claimed. waiting are the oldest suspects if none of them may be claimed.
func (x *modelRoom) oldestDue(due []*modelTask) (next []*modelTask, certain bool, waiting []*modelTask) {
	var suspects, others []*modelTask
	for _, t := range due {
		list := &others
		if t.Suspect {
			list = &suspects
		}
		switch {
		case t.Group != "" && x.takenByGroup[groupOf(t)] >= x.groupRoom(t):
		case x.mostByHandler[t.Handler] <= 0 || x.ordinary <= 0 && x.busy[t.Handler]:
		case len(*list) == 0 || t.At < (*list)[0].At:
			*list = []*modelTask{t}
		case t.At == (*list)[0].At:
			*list = append(*list, t)
		}
	}
	allowed := slices.DeleteFunc(slices.Clone(suspects), func(t *modelTask) bool { return !x.allows(t) })
	certain = len(others) > 0 || len(allowed) > 0 && len(allowed) == len(suspects) && !x.unsure
	isMet := len(suspects) > 0 && (len(others) == 0 || suspects[0].At <= others[0].At)
	if isMet && len(allowed) < len(suspects) {
		x.unsure = true
		x.suspectRefused = x.suspectRefused || len(allowed) == 0 && (len(others) == 0 || suspects[0].At < others[0].At)
	}
	switch {
	case len(allowed) == 0:
		return others, certain, suspects
	case len(others) == 0 || allowed[0].At < others[0].At && certain && len(allowed) == len(suspects) && !x.unsure:
		return allowed, certain, nil
	case others[0].At < allowed[0].At:
		return others, certain, nil
	}
	return append(others, allowed...), certain, nil
}

func (x *modelRoom) countClaimed(t *modelTask) {
	x.mostByHandler[t.Handler]--
	x.takenByGroup[groupOf(t)]++
	x.busy[t.Handler] = true
	x.ordinary--
	if t.Suspect {
		x.suspectsAllowed--
		x.onlySuspect = false
		if t.Crashes+1 >= x.maxCrashes {
			x.suspectsAllowed = 0
		}
	}
}
