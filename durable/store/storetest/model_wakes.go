package storetest

import (
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// The functions below judge whether workers learn in time that a task is due: from the Next
// of their latest claim, or because the store wakes them.

// A readyTask is a pending task that a claim gets when it is due, if it has room.
type readyTask struct {
	handler, schedule string
	at                store.Time
}

// A modelClaimer is what a sender knows from its latest claim.
type modelClaimer struct {
	store.Claim
	nextAt store.Time     // when it claims again, unless it is woken
	wakes  int            // how often the store had woken the workers
	got    map[string]int // how many tasks of each handler the claim got
}

// hasRoom reports whether the worker could begin a task of a handler that it has.
func (c *modelClaimer) hasRoom(handler string) bool {
	i := slices.Index(c.Handlers, handler)
	return !slices.ContainsFunc(c.Rooms, func(x store.Room) bool { return x.Handler == i && x.Most <= c.got[handler] })
}

// An owedWake is a wake-up that must come before time passes.
type owedWake struct {
	id      string
	task    readyTask
	claimer modelClaimer
	since   store.Time
}

// isReady reports whether a task is a readyTask. The model is not sure of tasks that a group, a
// rate or another suspect may hold back.
func (m *model) isReady(t *modelTask) bool {
	_, paused := m.pausedHandlers[t.Handler]
	if t.State != store.Pending || t.At == store.Farthest || t.Waits() || m.paused || paused || t.Suspect || t.Group != "" {
		return false
	}
	l := m.limits[t.Handler]
	return l == nil || l.Rate == 0 && (l.Concurrency == 0 || m.countRunning(t.Handler) < l.Concurrency)
}

// matchesClaim reports whether a worker with this claim can run tasks of a handler and a
// schedule.
func matchesClaim(c *store.Claim, handler, schedule string) bool {
	return slices.Contains(c.Handlers, handler) && (schedule == "" || slices.Contains(c.Schedules, schedule))
}

// checkNext checks that Next is not after the end of a lease, or the time of a task that the claim
// could get then. A store whose wake-ups may be lost can leave that to another worker.
func (m *model) checkNext(r *store.Round, a *store.Answer, room *modelRoom) {
	if !m.wakesReliably || !r.Claim.Asked {
		return
	}
	for _, t := range m.tasks {
		if t.State == store.Running || m.isReady(t) && t.At > m.now && matchesClaim(&r.Claim, t.Handler, t.Schedule) &&
			room.mostByHandler[t.Handler] > 0 && (room.ordinary > 0 || !room.busy[t.Handler]) {
			m.check(a.Next >= 0 && m.now.Add(a.Next) <= t.At, "Next is %v, but this is in %v: %+v", a.Next, t.At.Sub(m.now), t.Entry)
		}
	}
}

// noteClaim records what the sender of a round knows from the answer.
func (m *model) noteClaim(sender string, r *store.Round, a *store.Answer) {
	switch {
	case m.wakes == nil:
	case r.Leave:
		delete(m.claimers, sender)
	case r.Claim.Asked:
		c := modelClaimer{Claim: r.Claim, nextAt: store.Never, wakes: m.wakes(), got: make(map[string]int)}
		for i := range a.Tasks {
			c.got[a.Tasks[i].Handler]++
		}
		if a.Next >= 0 {
			c.nextAt = m.now.Add(a.Next)
		}
		m.claimers[sender] = c
	}
}

// noteReady notes which wake-ups the store owes, because the present command of a sender has
// made tasks ready before other workers claim again.
func (m *model) noteReady(by string) {
	if m.wakes == nil {
		return
	}
	ready := make(map[string]readyTask)
	for id, t := range m.tasks {
		if !m.isReady(t) {
			continue
		}
		x := readyTask{t.Handler, t.Schedule, t.At}
		ready[id] = x
		if old, ok := m.ready[id]; ok && old.handler == x.handler && old.schedule == x.schedule && old.at <= x.at {
			continue
		}
		for sender, c := range m.claimers {
			if sender != by && c.nextAt > max(x.at, m.now) && matchesClaim(&c.Claim, x.handler, x.schedule) && c.hasRoom(x.handler) {
				m.owed = append(m.owed, owedWake{id, x, c, m.now})
			}
		}
	}
	m.ready = ready
}

// checkWakes checks that wake-ups have come that were owed before now.
func (m *model) checkWakes() {
	m.owed = slices.DeleteFunc(m.owed, func(o owedWake) bool {
		m.check(o.since == m.now || m.wakes() > o.claimer.wakes, "the store did not wake a worker of %q, which claims at %d, when %q became %+v at %d", o.claimer.Handlers, o.claimer.nextAt, o.id, o.task, o.since)
		return o.since != m.now
	})
}
