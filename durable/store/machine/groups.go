package machine

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// Pending tasks with a group are Parked, except the first of each kind in the group: as many
// as the group has permits, at most [store.MaxOfGroup]. A claim sees only tasks that are not
// Parked. So neither a group at its limit nor a group's backlog costs it anything.
//
// Each transaction that changes a group ends with settleGroups, which parks and unparks.

// A GroupKey names a group of a handler.
type GroupKey struct{ Handler, Name string }

// A Group is the state of a group whose handler has a limit by group. There is none without
// running tasks, if the rate allows a full burst.
type Group struct {
	GroupKey
	Running int64      // Running tasks
	Full    store.Time // as in Limit
	// Until is when a claim must settle the group again, or Never: a parked task may begin
	// then, or the state is no longer needed.
	Until store.Time
}

func (t *Task) groupKey() GroupKey { return GroupKey{t.Handler, t.Group} }

// touchGroup makes settleGroups settle the group of a task.
func (m *machine) touchGroup(t *Task) {
	if t.Group != "" {
		m.touch(t.groupKey())
	}
}

func (m *machine) touch(k GroupKey) {
	if m.touched == nil {
		m.touched = make(map[GroupKey]bool)
	}
	m.touched[k] = true
}

func (m *machine) groupOf(k GroupKey) *Group {
	if m.numbers.Groups == 0 {
		return nil
	}
	return m.index.Group(k)
}

// groupLimit returns the limit of each group of a handler, with the state of one of them.
// It is zero if there is no such limit.
func groupLimit(l *Limit, g *Group) Limit {
	var x Limit
	if l != nil {
		x.Limit = l.OfGroup()
	}
	if g != nil {
		x.Running, x.Full = g.Running, g.Full
	}
	return x
}

// takeGroupPermit counts a claimed task for its group.
func (m *machine) takeGroupPermit(t *Task, l *Limit) {
	if t.Group == "" || l.OfGroup() == (store.Limit{}) {
		return
	}
	g := m.groupOf(t.groupKey())
	x := groupLimit(l, g)
	interval, _ := x.Pace()
	if g == nil {
		g = &Group{GroupKey: t.groupKey()}
		m.numbers.Groups++
	}
	g.Running++
	g.Full, g.Until = x.fullAt(m.now)+interval, Never
	m.index.PutGroup(g.GroupKey, g)
}

// returnGroupPermit stops counting a task whose attempt ends.
func (m *machine) returnGroupPermit(t *Task) {
	if t.Group == "" {
		return
	}
	if g := m.groupOf(t.groupKey()); g != nil {
		g.Running--
		m.index.PutGroup(g.GroupKey, g)
		m.touchGroup(t)
	}
}

// maxSettledPerClaim is how many groups one claim settles whose Until has passed.
const maxSettledPerClaim = 100

// touchRefilled touches groups whose Until has passed.
func (m *machine) touchRefilled() {
	if m.numbers.Groups > 0 {
		for _, g := range m.index.Groups(m.now, maxSettledPerClaim) {
			m.touch(g.GroupKey)
		}
	}
}

// nextRefill returns the first Until of a group, or Never.
func (m *machine) nextRefill() store.Time {
	if m.numbers.Groups > 0 {
		for _, g := range m.index.Groups(Never, 1) {
			return g.Until
		}
	}
	return Never
}

// touchGroupsOf touches the groups of a handler that have a state.
func (m *machine) touchGroupsOf(handler string) {
	for _, g := range m.allGroups() {
		if g.Handler == handler {
			m.touch(g.GroupKey)
		}
	}
}

func (m *machine) allGroups() []*Group {
	if m.numbers.Groups == 0 {
		return nil
	}
	return m.index.Groups(Never, int(m.numbers.Groups))
}

// resetRates allows a full burst of each rate. Otherwise, a clock that was set back would hold
// tasks back until the time before the step comes again.
func (m *machine) resetRates() {
	if m.numbers.Limits > 0 {
		for _, l := range m.index.Limits() {
			l.Full = 0
		}
	}
	for _, g := range m.allGroups() {
		g.Full = 0
		m.index.PutGroup(g.GroupKey, g)
		m.touch(g.GroupKey)
	}
}

// settleGroups parks and unparks tasks of the groups that were touched.
func (m *machine) settleGroups() {
	if len(m.touched) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(m.touched), func(a, b GroupKey) int {
		return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Name, b.Name))
	})
	clear(m.touched)
	type settling struct {
		*Group       // nil if there is none
		limit  Limit // of the group
		most   int64 // how many tasks of each kind may be ready
		parked bool  // others are Parked
	}
	groups, most := make(map[GroupKey]*settling), int64(0)
	for _, k := range keys {
		x := &settling{Group: m.groupOf(k)}
		x.limit = groupLimit(m.limitOf(k.Handler), x.Group)
		n, _ := x.limit.available(m.now)
		x.most = min(n, store.MaxOfGroup)
		most = max(most, x.most)
		groups[k] = x
	}
	members := m.index.Members(keys, int(most)+1)
	slices.SortStableFunc(members, func(a, b *Task) int { return cmp.Compare(a.At, b.At) })
	type kind struct {
		GroupKey
		schedule string
		suspect  bool
	}
	ready := make(map[kind]int64)
	for _, t := range members {
		k, x := kind{t.groupKey(), t.Schedule, t.Suspect}, groups[t.groupKey()]
		isParked := ready[k] >= x.most
		if isParked {
			x.parked = true
			isFull := x.limit.Concurrency > 0 && x.limit.Running >= int64(x.limit.Concurrency)
			m.heldByGroup = m.heldByGroup || isFull && t.At <= m.now && !m.numbers.Paused && m.limitOf(t.Handler).Paused == 0 && m.claim != nil && m.claim.Knows(t.Handler, t.Schedule)
		} else {
			ready[k]++
		}
		if isParked != t.Parked {
			t.Parked = isParked
			m.index.Changed(t)
			if !isParked {
				m.unparked = append(m.unparked, t)
			}
		}
	}
	for _, k := range keys {
		if x := groups[k]; x.Group != nil {
			m.putUntil(x.Group, &x.limit, x.parked)
		}
	}
}

// putUntil sets the Until of a group, or deletes the group's state if it is not needed. l has
// the group's limit and state.
func (m *machine) putUntil(g *Group, l *Limit, hasParked bool) {
	before, until, full := *g, Never, l.fullAt(m.now)
	if interval, burst := l.Pace(); hasParked && interval > 0 && full > m.now {
		permits := int64((m.now + interval*store.Time(burst) - full) / interval)
		if permits < store.MaxOfGroup && (l.Concurrency == 0 || l.Running+permits < int64(l.Concurrency)) {
			until = full - interval*store.Time(burst-permits-1)
		}
	}
	if l.Rate == 0 {
		g.Full = 0
	}
	switch {
	case l.Limit == (store.Limit{}) || l.Running <= 0 && full <= m.now:
		m.index.PutGroup(g.GroupKey, nil)
		m.numbers.Groups--
		return
	case l.Running <= 0:
		until = min(until, full)
	}
	if g.Until = until; *g != before {
		m.index.PutGroup(g.GroupKey, g)
	}
}

// recountGroups corrects the numbers of running tasks of all groups, and creates states that
// are missing, for example after a new limit. It reports whether a number was wrong.
func (m *machine) recountGroups() (corrected bool) {
	running := make(map[GroupKey]int64)
	for _, t := range m.index.Running(Never) {
		if l := m.limitOf(t.Handler); t.Group != "" && l != nil && l.OfGroup() != (store.Limit{}) {
			running[t.groupKey()]++
		}
	}
	groups := m.index.Groups(Never, math.MaxInt32)
	for _, g := range groups {
		running[g.GroupKey] += 0
	}
	if n := int64(len(groups)); n != m.numbers.Groups {
		m.numbers.Groups, corrected = n, true
	}
	for k, n := range running {
		g := m.groupOf(k)
		if g == nil {
			g = &Group{GroupKey: k, Until: Never}
			m.numbers.Groups++
		}
		if g.Running == n {
			continue
		}
		g.Running, corrected = n, true
		m.index.PutGroup(k, g)
		m.touch(k)
	}
	m.settleAndWake()
	return corrected
}

// settleAndWake settles the groups, and wakes workers for tasks that this transaction has unparked.
func (m *machine) settleAndWake() {
	m.settleGroups()
	for _, t := range m.unparked {
		m.wakeIfEarlier(t)
	}
	m.unparked = nil
}
