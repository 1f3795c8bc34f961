package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// setHandlerLimit sets a handler's limit.
func (b *storeTest) setHandlerLimit(handler string, l store.Limit) store.Outcome {
	b.Helper()
	return b.sendCommand(store.Command{Op: store.SetLimit, Items: []store.Item{{ID: handler, Limit: &l}}})[0]
}

// claimAs sends a claim for tasks of the handlers, as the worker with this name.
func (b *storeTest) claimAs(worker string, n int, handlers ...string) (ids []string, a store.Answer) {
	b.Helper()
	r := b.claimRound(n)
	r.Claim.Handlers = handlers
	s := b.stamp()
	s.Sender = worker
	a, err := b.Store.Do(ctx, 0, s, r)
	b.requireNoError(err)
	for _, x := range a.Tasks {
		ids = append(ids, x.ID)
	}
	return ids, a
}

// All workers together run at most as many tasks of a handler as its limit allows. Other
// handlers' tasks are not delayed. A task counts until its attempt ends, for any reason.
func testConcurrencyLimit(b *storeTest) {
	now := b.now()
	b.scheduleMany("a", 12, now-1000)
	b.scheduleMany("b", 3, now-100)
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{Concurrency: 3}), store.Created)
	ids, one := b.claimAs("one", 2, "a", "b")
	equal(b, "claimed", ids, []string{"a0", "a1"})
	ids, two := b.claimAs("two", 10, "a", "b")
	equal(b, "claimed", ids, []string{"a2", "b0", "b1", "b2"})
	b.require(two.Next != 0 && two.Limited, "the answer is %+v", two)
	ids, a := b.claimAs("three", 10, "b", "a")
	equal(b, "claimed at the limit", len(ids), 0)
	b.require(a.Next != 0 && a.Limited, "the answer is %+v", a)
	_, a = b.claimAs("four", 10, "b")
	b.require(!a.Limited, "a worker without the handler is limited")

	// The reports of a round make room for its own claim.
	claimAfter := func(what string, want ...string) store.Claimed {
		b.Helper()
		ids, a := b.claimAs("one", 10, "a")
		equal(b, "claimed after "+what, ids, want)
		return a.Tasks[0]
	}
	r := b.claimRound(10)
	r.Claim.Handlers = []string{"a"}
	r.Reports = []store.Report{{Lease: leaseOf(one.Tasks[0]), End: store.Done, Due: now}}
	got := b.sendRound(r).Tasks
	b.require(len(got) == 1 && got[0].ID == "a3", "claimed %+v with a report", got)
	b.require(b.report(one.Tasks[1], store.Failed, store.When{}), "the report was refused")
	x := claimAfter("a failure", "a4")
	b.require(b.report(x, store.HandBack, b.after(1000)), "the report was refused")
	x = claimAfter("a task that was handed back", "a5")
	b.require(b.report(x, store.Retry, b.after(1000)), "the report was refused")
	x = claimAfter("a retry", "a6")
	equal(b, "cancel", b.changeTask(store.Cancel, x.ID, store.When{}), store.Stopping)
	_, a = b.claimAs("one", 10, "a")
	equal(b, "claimed while a cancelled task runs", len(a.Tasks), 0)
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	x = claimAfter("a cancel", "a7")
	equal(b, "schedule", b.changeTask(store.Schedule, x.ID, b.after(1000)), store.Following) // of another handler
	b.require(b.report(x, store.Done, store.When{}), "the report was refused")
	claimAfter("another handler's task with its key", "a8")
	b.require(!b.report(x, store.Done, store.When{}), "a second report was accepted")
	ids, _ = b.claimAs("one", 10, "a")
	equal(b, "claimed after a report that was refused", len(ids), 0)
	b.sleep(leaseUnits + 1)
	ids, _ = b.claimAs("one", 10, "a")
	equal(b, "claimed when three leases have ended", len(ids), 3)
}

// A handler's tasks are claimed no faster than its Rate allows. Next is when the next task
// may be claimed.
func testRateLimit(b *storeTest) {
	const tasks = 30
	interval := 4 * b.unit
	l := store.Limit{Rate: float64(time.Second) / float64(interval)}
	_, burst := l.Pace()
	b.setHandlerLimit("a", l)
	b.scheduleMany("a", tasks, b.now()-1000)
	var times []store.Time
	for {
		ids, a := b.claimAs("one", 10, "a")
		for i, id := range ids {
			equal(b, "claimed", id, fmt.Sprint("a", len(times)))
			if n := len(times) - int(burst); n >= 0 {
				b.require(a.Now.Sub(times[n]) >= interval, "%d tasks in %v", burst+1, a.Now.Sub(times[n]))
			}
			times = append(times, a.Now)
			b.require(b.report(a.Tasks[i], store.Done, store.When{}), "the report was refused")
		}
		if len(times) == tasks {
			break
		}
		b.require(len(ids) == 10 || a.Next > 0 && a.Next <= interval, "Next is %v, after %d tasks", a.Next, len(ids))
		if b.Advance != nil {
			b.Advance(a.Next)
		} else {
			time.Sleep(a.Next)
		}
	}
	if took := times[tasks-1].Sub(times[0]); b.Advance != nil {
		equal(b, "duration of all claims", took, (tasks-time.Duration(burst))*interval)
	}
	// After a pause, the worker gets one burst of tasks.
	b.sleep(int(interval/b.unit) * int(burst))
	b.scheduleMany("a", tasks, b.now()-1000)
	ids, _ := b.claimAs("one", tasks, "a")
	equal(b, "claimed after a pause", len(ids), int(burst))
}

// A new limit counts tasks that already run. A removed limit has no effect.
func testLimitWhileRunning(b *storeTest) {
	b.scheduleMany("a", 12, b.now()-1000)
	b.scheduleMany("b", 2, b.now()-1000)
	_, first := b.claimAs("one", 5, "a")
	b.claimAs("one", 1, "b")
	b.setHandlerLimit("a", store.Limit{Concurrency: 4})
	requireClaimed := func(want int) {
		b.Helper()
		ids, _ := b.claimAs("one", 3, "a")
		equal(b, "claimed", len(ids), want)
	}
	requireClaimed(0)
	b.require(b.report(first.Tasks[0], store.Done, store.When{}), "the report was refused")
	requireClaimed(0)
	b.require(b.report(first.Tasks[1], store.Done, store.When{}), "the report was refused")
	requireClaimed(1)
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{Concurrency: 6}), store.Replaced)
	requireClaimed(2)
	requireClaimed(0)
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{}), store.Removed)
	requireClaimed(3)
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{Concurrency: 9}), store.Created)
	requireClaimed(0)
	b.setHandlerLimit("a", store.Limit{Concurrency: 10})
	if b.Reopen != nil {
		b.reopen()
	}
	requireClaimed(1)
	requireClaimed(0)
}

func testLimitSettings(b *storeTest) {
	equal(b, "outcome", b.setHandlerLimit("a", store.Limit{}), store.Absent)
	want := make(map[string]store.Limit)
	var items []store.Item
	for i := range store.MaxLimits {
		l := store.Limit{Concurrency: i + 1, Rate: 0.3 * float64(i)}
		items = append(items, store.Item{ID: fmt.Sprint("h ü ", i), Limit: &l})
		want[items[i].ID] = l
	}
	setLimits := func(outcome store.Outcome) {
		b.Helper()
		for chunk := range slices.Chunk(items, store.MaxBatch) {
			for _, o := range b.sendCommand(store.Command{Op: store.SetLimit, Items: chunk}) {
				equal(b, "outcome", o, outcome)
			}
		}
	}
	setLimits(store.Created)
	equal(b, "outcome of one too many", b.setHandlerLimit("a", store.Limit{Rate: 1}), store.Kept)
	if b.Reopen != nil {
		b.reopen()
	}
	equal(b, "limits", b.stats().Limits, want)
	for i := range items {
		items[i].Limit = &store.Limit{}
	}
	setLimits(store.Removed)
	equal(b, "limits", len(b.stats().Limits), 0)
	for _, l := range []*store.Limit{nil, {Concurrency: -1}, {Rate: -1}, {Rate: math.NaN()}, {Rate: 1e-11}, {Rate: 1e308}} {
		_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.SetLimit, Items: []store.Item{{ID: "a", Limit: l}}})
		b.requireError(err, store.ErrInvalid)
	}
	_, err := b.Store.Change(ctx, 0, b.stamp(), store.Command{Op: store.SetLimit, Items: []store.Item{{Limit: &store.Limit{}}}})
	b.requireError(err, store.ErrInvalid)
}

// A sleeping worker is woken whenever a limit allows another task.
func testLimitWakes(b *storeTest) {
	if a := b.sendRound(b.claimRound(1)); a.Next >= 0 {
		b.Skip("workers of this store also claim from time to time: a wake-up may come late")
	}
	s, end := b.startSleeper("sleeper", "a", "c", "d")
	defer end()
	b.setHandlerLimit("a", store.Limit{Concurrency: 1})
	b.scheduleMany("a", 5, b.now()-1000)
	_, a := b.claimAs("other", 1, "a")
	waitForClaims("nothing", 0, s)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	waitForClaims("after the report of the other worker", 1, s)
	b.setHandlerLimit("a", store.Limit{Concurrency: 2})
	waitForClaims("after the limit was raised", 2, s)
	b.setHandlerLimit("a", store.Limit{Concurrency: 3, Rate: float64(time.Second) / float64(50*b.unit)})
	waitForClaims("after the limit was raised again", 3, s)
	b.setHandlerLimit("a", store.Limit{})
	waitForClaims("after the limit was removed", 4, s)

	// scheduleLater schedules a task of a handler while other tasks of the handler wait.
	scheduleLater := func(id, handler string, in int) {
		x := task(id)
		x.Handler = handler
		b.sendCommand(store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, Task: x, When: b.after(in)}}})
	}
	b.setHandlerLimit("d", store.Limit{Concurrency: 1})
	b.scheduleMany("d", 2, b.now()-1000)
	_, a = b.claimAs("other", 1, "d")
	waitForClaims("nothing", 4, s)
	scheduleLater("later d", "d", 5)
	r := b.claimRound(1)
	r.Claim.Handlers = []string{"d"}
	r.Reports = []store.Report{{Lease: leaseOf(a.Tasks[0]), End: store.Done}}
	a = b.sendRound(r)
	waitForClaims("nothing", 4, s)
	b.require(b.report(a.Tasks[0], store.Done, store.When{}), "the report was refused")
	b.sleep(5)
	waitForClaims("later", 5, s)

	// A Rate wakes the worker in the same way.
	interval := int(time.Second / b.unit)
	b.setHandlerLimit("c", store.Limit{Rate: 1})
	b.scheduleMany("c", 3, b.now()-1000)
	waitForClaims("the rate", 6, s)
	scheduleLater("later c", "c", 4*interval)
	waitForClaims("nothing", 6, s)
	b.sleep(interval)
	waitForClaims("the rate", 7, s)
	b.sleep(interval)
	waitForClaims("the rate", 8, s)
	b.sleep(2 * interval)
	waitForClaims("later", 9, s)
}

// The functions below implement limits in the model.

type modelLimit struct {
	store.Limit
	fullAt store.Time // when a full burst of tasks may be claimed again
}

// timeUntilFull returns how long it takes until a full burst may be claimed again.
func (l *modelLimit) timeUntilFull(now store.Time) store.Time {
	interval, burst := l.Pace()
	return min(max(0, l.fullAt-now), interval*store.Time(burst))
}

// available returns how many tasks the Rate allows now, or -1 for any number, and when it
// allows the next task.
func (l *modelLimit) available(now store.Time) (n int, next store.Time) {
	interval, burst := l.Pace()
	if interval == 0 {
		return -1, now
	}
	unusedTime := interval*store.Time(burst) - l.timeUntilFull(now)
	return int(unusedTime / interval), now + max(0, interval-unusedTime)
}

func (l *modelLimit) countClaimed(now store.Time) {
	interval, _ := l.Pace()
	l.fullAt = now + l.timeUntilFull(now) + interval
}

func (m *model) countRunning(handler string) (n int) {
	for _, t := range m.tasks {
		if t.State == store.Running && t.Handler == handler {
			n++
		}
	}
	return n
}

// A modelGroup names a group of a handler.
type modelGroup struct{ handler, group string }

func groupOf(t *modelTask) modelGroup { return modelGroup{t.Handler, t.Group} }

// limitOfGroup returns the limit of the task's group, or nil.
func (m *model) limitOfGroup(t *modelTask) *modelLimit {
	l := m.limits[t.Handler]
	if t.Group == "" || l == nil || l.OfGroup() == (store.Limit{}) {
		return nil
	}
	return &modelLimit{Limit: l.OfGroup(), fullAt: m.groupsFullAt[groupOf(t)]}
}

func (m *model) countRunningOfGroup(t *modelTask) (n int) {
	for _, x := range m.tasks {
		if x.State == store.Running && groupOf(x) == groupOf(t) {
			n++
		}
	}
	return n
}

// withoutBehind returns a function that removes tasks which a claim may ignore from due: after a
// SetLimit, all but the first of a group, until a claim gets one of the group.
func (m *model) withoutBehind(due []*modelTask) func(due []*modelTask) []*modelTask {
	type kind struct {
		modelGroup
		schedule string
		suspect  bool
	}
	first, ignored := make(map[kind]*modelTask), make(map[*modelTask]bool)
	for _, t := range due {
		if k := (kind{groupOf(t), t.Schedule, t.Suspect}); t.Group != "" && m.behind[groupOf(t)] {
			switch old := first[k]; {
			case old == nil:
				first[k] = t
			case t.At < old.At:
				first[k], ignored[old] = t, true
			case t.At == old.At:
				ignored[t], ignored[old] = true, true
			default:
				ignored[t] = true
			}
		}
	}
	return func(due []*modelTask) []*modelTask {
		return slices.DeleteFunc(slices.Clone(due), func(t *modelTask) bool { return ignored[t] })
	}
}

// setRandomLimit sets or removes a random limit.
func (m *modelTest) setRandomLimit() {
	h := fmt.Sprint("h", m.rng.IntN(2))
	randomRate := func() float64 { return []float64{0, 0, 40, 300}[m.rng.IntN(4)] }
	l := store.Limit{Concurrency: m.rng.IntN(3), Rate: randomRate()}
	if m.rng.IntN(2) == 0 {
		l = store.Limit{Concurrency: m.rng.IntN(2) * m.rng.IntN(4), GroupConcurrency: m.rng.IntN(3), GroupRate: randomRate()}
	}
	if m.rng.IntN(3) == 0 {
		l = store.Limit{}
	}
	m.sendAndApply(store.Command{Op: store.SetLimit, Items: []store.Item{{ID: h, Limit: &l}}})
}

// setLimit applies SetLimit to the model and returns the expected outcome.
func (m *model) setLimit(handler string, l store.Limit) store.Outcome {
	old, none := m.limits[handler], l == store.Limit{}
	for _, t := range m.tasks {
		if t.Handler == handler && t.Group != "" {
			m.behind[groupOf(t)] = true
		}
	}
	for k := range m.groupsFullAt {
		if k.handler == handler && l.GroupRate == 0 {
			delete(m.groupsFullAt, k)
		}
	}
	switch {
	case none && old == nil:
		return store.Absent
	case none:
		delete(m.limits, handler)
		return store.Removed
	case old == nil:
		m.limits[handler] = &modelLimit{Limit: l}
		return store.Created
	}
	m.caseCounts["limited again"]++
	old.Limit = l
	return store.Replaced
}

// applyLimits reduces x to what the limits allow.
func (m *model) applyLimits(x *modelRoom) {
	roomByGroup := make(map[modelGroup]int)
	x.groupRoom = func(t *modelTask) int {
		n, ok := roomByGroup[groupOf(t)]
		if !ok {
			n = store.MaxOfGroup
			if l := m.limitOfGroup(t); l != nil {
				if l.Concurrency > 0 {
					n = min(n, max(0, l.Concurrency-m.countRunningOfGroup(t)))
				}
				if permits, _ := l.available(m.now); permits >= 0 {
					n = min(n, permits)
				}
			}
			roomByGroup[groupOf(t)] = n
		}
		return n
	}
	for _, t := range m.tasks {
		x.groupRoom(t) // before the claim
	}
	for h, l := range m.limits {
		if _, ok := x.mostByHandler[h]; !ok {
			continue
		}
		if l.Concurrency > 0 {
			x.mostByHandler[h] = min(x.mostByHandler[h], max(0, l.Concurrency-m.countRunning(h)))
		}
		if n, _ := l.available(m.now); n >= 0 {
			x.mostByHandler[h] = min(x.mostByHandler[h], n)
		}
	}
}

// checkLimitsInAnswer checks the answer's Limited and Next, for handlers with limits.
func (m *model) checkLimitsInAnswer(r *store.Round, a *store.Answer, due []*modelTask) {
	wantLimited := false
	for i, h := range r.Claim.Handlers {
		hasNoRoom := slices.ContainsFunc(r.Claim.Rooms, func(x store.Room) bool { return x.Handler == i && x.Most == 0 })
		l := m.limits[h]
		if l == nil || r.Claim.Max == 0 || hasNoRoom ||
			!slices.ContainsFunc(due, func(t *modelTask) bool { return t.Handler == h }) {
			continue
		}
		n, next := l.available(m.now)
		switch {
		case l.Concurrency > 0 && m.countRunning(h) >= l.Concurrency:
			wantLimited = true
			m.caseCounts["kept by concurrency"]++
		case n == 0:
			m.caseCounts["kept by rate"]++
			// A suspect may wait for another suspect, and not for the rate.
			isOrdinary := func(t *modelTask) bool { return t.Handler == h && !t.Suspect }
			m.check(!m.wakesReliably || !slices.ContainsFunc(due, isOrdinary) || a.Next >= 0 && m.now.Add(a.Next) <= next, "Next is %v, and the rate of %s lets a task begin in %v", a.Next, h, next.Sub(m.now))
		}
	}
	for _, t := range due {
		l := m.limitOfGroup(t)
		if l == nil || r.Claim.Max == 0 {
			continue
		}
		n, next := l.available(m.now)
		switch {
		case l.Concurrency > 0 && m.countRunningOfGroup(t) >= l.Concurrency:
			wantLimited = true
			m.caseCounts["kept by a group's concurrency"]++
		case n == 0:
			m.caseCounts["kept by a group's rate"]++
			m.check(!m.wakesReliably || t.Suspect || a.Next >= 0 && m.now.Add(a.Next) <= next, "Next is %v, and the rate of the group %v lets a task begin in %v", a.Next, groupOf(t), next.Sub(m.now))
		}
	}
	m.check(!a.Limited || wantLimited || r.Claim.Max == 0, "Limited is true, but no limit holds back a task")
}
