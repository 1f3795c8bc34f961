package machine

import (
	"math"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// A Picker counts how many more tasks a claim may get, while an Index selects them. The
// Index first selects the oldest tasks within each handler's Room.First, and then the
// oldest other tasks.
type Picker struct {
	roomByHandler   map[string]*store.Room // nil if all handlers have room
	suspectsAllowed int                    // how many more suspects the claim may get
	onlySuspect     bool                   // the claim may get a last suspect
	maxCrashes      int
	waiting         store.WaitingSuspects
}

// NewPicker returns a Picker for a claim. The Picker ignores Max, so that an Index can
// select one more task than Max.
func NewPicker(c *store.Claim, maxCrashes int) *Picker {
	p := &Picker{suspectsAllowed: c.Suspects, onlySuspect: c.OnlySuspect && c.Suspects > 0, maxCrashes: maxCrashes}
	if c.Rooms != nil {
		p.roomByHandler = make(map[string]*store.Room, len(c.Rooms))
	}
	for i, r := range c.Rooms {
		if r.Most == c.Max {
			r.Most = math.MaxInt
		}
		p.roomByHandler[c.Handlers[i]] = &r
	}
	return p
}

// Has reports whether the claim may get one more task of the handler. If first is true,
// the task must be within the Room.First.
func (p *Picker) Has(handler string, first bool) bool {
	if p.roomByHandler == nil {
		return true
	}
	r := p.roomByHandler[handler]
	return r.Most > 0 && (!first || r.First > 0)
}

// Room returns how many more tasks of the handler the claim may get.
func (p *Picker) Room(handler string) int {
	if p.roomByHandler == nil {
		return math.MaxInt
	}
	return p.roomByHandler[handler].Most
}

// Take reports whether the claim gets a task of a handler for which Has returns true, and
// counts the task.
func (p *Picker) Take(t *Task) bool {
	if t.Suspect && !p.takeSuspect(t) {
		return false
	}
	if r := p.roomByHandler[t.Handler]; r != nil {
		r.Most--
		r.First--
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

// Within removes suspects from due that the claim certainly does not get. It keeps one
// of them, so that the claim's answer tells that it waits.
func (p *Picker) Within(due []*Task) []*Task {
	n := 0
	return slices.DeleteFunc(due, func(t *Task) bool {
		if t.Suspect {
			n++
		}
		return t.Suspect && n > p.suspectsAllowed+1
	})
}

// Pick chooses up to n of the due tasks, which must be sorted, the oldest first.
func (p *Picker) Pick(due []*Task, n int) (picked []*Task) {
	for _, first := range []bool{true, false} {
		var others []*Task
		for _, t := range due {
			switch {
			case len(picked) == n || !p.Has(t.Handler, first):
				others = append(others, t)
			case p.Take(t):
				picked = append(picked, t)
			}
		}
		due = others
	}
	return picked
}
