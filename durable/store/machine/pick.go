package machine

import (
	"math"

	"github.com/tickless/tickless/durable/store"
)

// A Picker decides which due tasks a claim gets, while an Index offers them, the oldest
// first.
type Picker struct {
	rooms      map[string]*room
	groupRooms map[GroupKey]int  // how many more tasks of each group the claim may get
	limits     map[string]*Limit // by handler; nil if there are none
	groupOf    func(GroupKey) *Group
	now        store.Time
	ordinary   int // how many tasks may come before the Claim's Spare ones
	maxCrashes int

	suspectsAllowed int  // how many more suspects the claim may get
	onlySuspect     bool // the claim may get a last suspect
	waiting         store.WaitingSuspects
	exceeded        bool       // a due task had no room
	limited         bool       // a Limit's Concurrency held back a due task
	permitAt        store.Time // when a Limit's Rate lets the next task begin that it held back, or Never
}

// A room is what a handler may still have of a claim.
type room struct {
	most  int
	taken int
	busy  bool   // the handler gets none of the Spare tasks
	limit *Limit // not nil if most is what the Limit allows
}

// newPicker returns a Picker for a claim. It ignores Max, so that an Index can select one
// more task than Max.
func newPicker(c *store.Claim, maxCrashes int, now store.Time, limits map[string]*Limit, groupOf func(GroupKey) *Group) *Picker {
	p := &Picker{rooms: make(map[string]*room), groupRooms: make(map[GroupKey]int), limits: limits, groupOf: groupOf, now: now, ordinary: math.MaxInt, maxCrashes: maxCrashes,
		suspectsAllowed: c.Suspects, onlySuspect: c.OnlySuspect && c.Suspects > 0, permitAt: Never}
	if c.Spare > 0 {
		p.ordinary = c.Max - c.Spare
	}
	for _, r := range c.Rooms {
		most := r.Most
		if most == c.Max {
			most = math.MaxInt
		}
		p.rooms[c.Handlers[r.Handler]] = p.newRoom(c.Handlers[r.Handler], most, r.Busy)
	}
	return p
}

func (p *Picker) newRoom(handler string, most int, busy bool) *room {
	r := &room{most: most, busy: busy}
	if l := p.limits[handler]; l != nil && most > 0 {
		if n, _ := l.available(p.now); int(n) <= most {
			r.most, r.limit = int(n), l
		}
	}
	return r
}

func (p *Picker) roomOf(handler string) *room {
	r := p.rooms[handler]
	if r == nil {
		r = p.newRoom(handler, math.MaxInt, false)
		p.rooms[handler] = r
	}
	return r
}

// Has reports whether the claim may get one more due task of the handler. If it may not,
// the Index need not offer others.
func (p *Picker) Has(handler string) bool {
	r := p.roomOf(handler)
	switch {
	case r.taken >= r.most && r.limit != nil:
		p.holdBack(r)
	case r.taken >= r.most || p.ordinary <= 0 && r.busy:
		p.exceeded = true
	default:
		return true
	}
	return false
}

// holdBack records that the Limit of a room holds back a due task.
func (p *Picker) holdBack(r *room) {
	l := *r.limit
	interval, _ := l.Pace()
	l.Running += int64(r.taken)
	l.Full = l.fullAt(p.now) + interval*store.Time(r.taken)
	if _, permitAt := l.available(p.now); permitAt != Never {
		p.permitAt = min(p.permitAt, permitAt)
		return
	}
	p.limited, r.limit.Kept = true, true
}

// roomOfGroup returns how many more tasks of the task's group the claim may get.
func (p *Picker) roomOfGroup(t *Task) int {
	if t.Group == "" {
		return math.MaxInt
	}
	k := t.groupKey()
	n, ok := p.groupRooms[k]
	if !ok {
		n = store.MaxOfGroup
		if l := p.limits[t.Handler]; l != nil {
			x := groupLimit(l, p.groupOf(k))
			permits, _ := x.available(p.now)
			n = min(n, int(permits))
		}
		p.groupRooms[k] = n
	}
	return n
}

// Skips reports whether the claim cannot get a due task because its group has no permit. The
// Index then continues with the next task.
func (p *Picker) Skips(t *Task) bool {
	return p.roomOfGroup(t) <= 0
}

// Take reports whether the claim gets a due task that it does not skip, and counts it. A
// refused suspect means that the claim gets no other suspect.
func (p *Picker) Take(t *Task) bool {
	if !p.Has(t.Handler) || t.Suspect && !p.takeSuspect(t) {
		return false
	}
	r := p.roomOf(t.Handler)
	r.taken++
	r.busy = true
	p.ordinary--
	if t.Group != "" {
		p.groupRooms[t.groupKey()] = p.roomOfGroup(t) - 1
	}
	return true
}

func (p *Picker) takeSuspect(t *Task) bool {
	isLast := t.Crashes+1 >= p.maxCrashes
	switch {
	case p.suspectsAllowed > 0 && (!isLast || p.onlySuspect):
		p.suspectsAllowed--
		p.onlySuspect = false
		if isLast {
			p.suspectsAllowed = 0
		}
		return true
	case p.waiting != store.NoneWaits:
	case p.suspectsAllowed > 0:
		p.waiting = store.LastWaits
	default:
		p.waiting = store.SomeWait
	}
	p.suspectsAllowed = 0 // no suspect overtakes another
	return false
}
