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
}

// NewPicker returns a Picker for a claim. The Picker ignores Max, so that an Index can
// select one more task than Max.
func NewPicker(c *store.Claim) *Picker {
	p := &Picker{suspectsAllowed: math.MaxInt}
	switch c.Suspects {
	case store.OneSuspect:
		p.suspectsAllowed = 1
	case store.NoSuspect:
		p.suspectsAllowed = 0
	}
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

// Has reports whether the claim may get one more task of the handler. suspect says whether
// the task is a suspect. If first is true, the task must be within the Room.First.
func (p *Picker) Has(handler string, suspect, first bool) bool {
	if suspect && p.suspectsAllowed == 0 {
		return false
	}
	if p.roomByHandler == nil {
		return true
	}
	r := p.roomByHandler[handler]
	return r.Most > 0 && (!first || r.First > 0)
}

// Take records that the claim gets a task.
func (p *Picker) Take(handler string, suspect bool) {
	if suspect {
		p.suspectsAllowed--
	}
	if r := p.roomByHandler[handler]; r != nil {
		r.Most--
		r.First--
	}
}

// Within removes suspects from due if there are more than the claim may get.
func (p *Picker) Within(due []*Task) []*Task {
	n := 0
	return slices.DeleteFunc(due, func(t *Task) bool {
		if t.Suspect() {
			n++
		}
		return t.Suspect() && n > p.suspectsAllowed
	})
}

// Pick chooses up to n of the due tasks, which must be sorted, the oldest first.
func (p *Picker) Pick(due []*Task, n int) (picked []*Task) {
	for _, first := range []bool{true, false} {
		var others []*Task
		for _, t := range due {
			if len(picked) < n && p.Has(t.Handler, t.Suspect(), first) {
				p.Take(t.Handler, t.Suspect())
				picked = append(picked, t)
			} else {
				others = append(others, t)
			}
		}
		due = others
	}
	return picked
}
