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
	for i := range n {
		t := task(fmt.Sprint(handler, i))
		t.Handler = handler
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: t.ID, Task: t, When: store.At(first + store.Time(i))}}})
	}
}

// claimWith claims tasks of the handlers a and b, limited by rooms.
func (b *storeTest) claimWith(n int, full bool, rooms ...store.Room) (ids []string, next time.Duration) {
	b.Helper()
	r := b.claimRound(n)
	r.Claim.Handlers, r.Claim.Rooms, r.Claim.Full = []string{"a", "b"}, rooms, full
	a := b.sendRound(r)
	for _, x := range a.Tasks {
		ids = append(ids, x.ID)
	}
	return ids, a.Next
}

// If a claim has no more room for one handler, it still gets tasks of the others.
func testRooms(b *storeTest) {
	now := b.now()
	b.scheduleMany("a", 20, now-1000)
	b.scheduleMany("b", 3, now-100)
	got, next := b.claimWith(8, false, store.Room{Most: 3, First: 3}, store.Room{Most: 8, First: 8})
	equal(b, "claimed", got, []string{"a0", "a1", "a2", "b0", "b1", "b2"})
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, next = b.claimWith(8, false, store.Room{}, store.Room{Most: 8, First: 8})
	equal(b, "claimed", len(got), 0)
	b.require(next != 0, "Next is 0, but the claim has no room for more")
	got, next = b.claimWith(2, false, store.Room{Most: 2, First: 2}, store.Room{})
	equal(b, "claimed", got, []string{"a3", "a4"})
	equal(b, "Next, if the worker may have more room", next, 0)
	// Next ignores tasks for which the claim has no room.
	b.changeTask(store.Schedule, "later", b.after(10*leaseUnits))
	_, next = b.claimWith(8, true, store.Room{}, store.Room{Most: 8, First: 8})
	b.require(next > 0, "Next is %v", next)
}

// If a claim cannot get all due tasks, each handler first gets its share (Room.First).
func testRoomShares(b *storeTest) {
	now := b.now()
	b.scheduleMany("a", 20, now-1000)
	b.scheduleMany("b", 20, now-100)
	got, next := b.claimWith(8, false, store.Room{Most: 8, First: 5}, store.Room{Most: 8, First: 2})
	equal(b, "claimed", got, []string{"a0", "a1", "a2", "a3", "a4", "b0", "b1", "a5"})
	equal(b, "next", next, 0)
	got, _ = b.claimWith(8, false, store.Room{Most: 6, First: 1}, store.Room{Most: 8, First: 1})
	equal(b, "claimed", got, []string{"a6", "b2", "a7", "a8", "a9", "a10", "a11", "b3"})
}

// A claim gets no suspects, one or all, as its Suspects says. A suspect is a task with
// crashed attempts.
func testSuspects(b *storeTest) {
	for i := range 4 {
		b.schedule(fmt.Sprint("s", i), b.after(0))
		b.sleep(1)
	}
	b.claim(10)
	b.sleep(leaseUnits + 1)
	claim := func(s store.Suspects, n int) (ids []string, next time.Duration) {
		b.Helper()
		r := b.claimRound(n)
		r.Claim.Suspects = s
		a := b.sendRound(r)
		for _, x := range a.Tasks {
			ids = append(ids, x.ID)
		}
		slices.Sort(ids)
		return ids, a.Next
	}
	b.sendRound(b.claimRound(0)) // ends the expired leases
	b.sleep(1)
	b.schedule("k0", b.after(0))
	b.schedule("k1", b.after(0))
	got, _ := claim(store.NoSuspect, 1)
	equal(b, "claimed", len(got), 1)
	b.require(got[0][0] == 'k', "claimed %v, a suspect", got)
	got, next := claim(store.OneSuspect, 10)
	equal(b, "claimed", len(got), 2)
	b.require(got[0][0] == 'k' && got[1][0] == 's', "claimed %v", got)
	b.require(next != 0, "Next is 0, but the other tasks need another claim")
	got, _ = claim(store.NoSuspect, 10)
	equal(b, "claimed", len(got), 0)
	got, _ = claim(store.AllSuspects, 10)
	equal(b, "claimed", len(got), 3)
}

// The functions below are the part of the model that decides which tasks a claim may get.

// addRandomRooms sets random rooms for a claim.
func (m *modelTest) addRandomRooms(c *store.Claim) {
	c.Suspects = []store.Suspects{store.AllSuspects, store.AllSuspects, store.OneSuspect, store.NoSuspect}[m.rng.IntN(4)]
	if m.rng.IntN(2) == 0 {
		return
	}
	for range c.Handlers {
		maxTasks := m.rng.IntN(c.Max + 1)
		c.Rooms = append(c.Rooms, store.Room{Most: maxTasks, First: m.rng.IntN(maxTasks + 1)})
	}
}

// A modelRoom counts how many more tasks a claim may get.
type modelRoom struct {
	mostByHandler, firstByHandler map[string]int
	suspectsAllowed               int
}

func roomOf(c *store.Claim) *modelRoom {
	const unlimited = 1 << 30
	x := &modelRoom{make(map[string]int), make(map[string]int), unlimited}
	for i, h := range c.Handlers {
		x.mostByHandler[h], x.firstByHandler[h] = unlimited, unlimited
		if c.Rooms != nil {
			x.firstByHandler[h] = c.Rooms[i].First
			if c.Rooms[i].Most < c.Max {
				x.mostByHandler[h] = c.Rooms[i].Most
			}
		}
	}
	switch c.Suspects {
	case store.OneSuspect:
		x.suspectsAllowed = 1
	case store.NoSuspect:
		x.suspectsAllowed = 0
	}
	return x
}

func (x *modelRoom) allows(t *modelTask) bool {
	return x.mostByHandler[t.Handler] > 0 && (t.Crashes == 0 || x.suspectsAllowed > 0)
}

// candidates returns the due tasks from which the next one is chosen.
func (x *modelRoom) candidates(due []*modelTask) (chosen []*modelTask) {
	for _, first := range []bool{true, false} {
		for _, t := range due {
			if x.allows(t) && (!first || x.firstByHandler[t.Handler] > 0) {
				chosen = append(chosen, t)
			}
		}
		if len(chosen) > 0 {
			break
		}
	}
	return chosen
}

// oldestDue returns when the oldest candidate was due, or 0 if there is none.
func (x *modelRoom) oldestDue(due []*modelTask) (at store.Time) {
	for _, t := range x.candidates(due) {
		if at == 0 || t.At < at {
			at = t.At
		}
	}
	return at
}

func (x *modelRoom) countClaimed(t *modelTask) {
	x.mostByHandler[t.Handler]--
	x.firstByHandler[t.Handler]--
	if t.Crashes > 0 {
		x.suspectsAllowed--
	}
}
