package storetest

import (
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

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
