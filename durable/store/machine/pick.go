package machine

import (
	"math"
	"slices"

	"github.com/tickless/tickless/durable/store"
)

// A Picker knows what a claim has room for, while an Index picks the tasks that it gets: the
// oldest that are within their handlers' First, and then the oldest of the others.
type Picker struct {
	rooms    map[string]*store.Room // nil: there is room for all
	suspects int
}

// NewPicker returns a Picker for a claim. It has room for more than Max tasks, so that an
// Index sees whether there are more.
func NewPicker(c *store.Claim) *Picker {
	p := &Picker{suspects: math.MaxInt}
	switch c.Suspects {
	case store.OneSuspect:
		p.suspects = 1
	case store.NoSuspect:
		p.suspects = 0
	}
	if c.Rooms != nil {
		p.rooms = make(map[string]*store.Room, len(c.Rooms))
	}
	for i, r := range c.Rooms {
		if r.Most == c.Max {
			r.Most = math.MaxInt
		}
		p.rooms[c.Handlers[i]] = &r
	}
	return p
}

// Has reports whether there is room for a task, within its handler's First or beyond.
func (p *Picker) Has(handler string, suspect, first bool) bool {
	if suspect && p.suspects == 0 {
		return false
	}
	if p.rooms == nil {
		return true
	}
	r := p.rooms[handler]
	return r.Most > 0 && (!first || r.First > 0)
}

// Take is for a task that the claim gets.
func (p *Picker) Take(handler string, suspect bool) {
	if suspect {
		p.suspects--
	}
	if r := p.rooms[handler]; r != nil {
		r.Most--
		r.First--
	}
}

// Within returns the tasks that the claim may get, without the suspects that it may not.
func (p *Picker) Within(due []*Task) []*Task {
	n := 0
	return slices.DeleteFunc(due, func(t *Task) bool {
		if t.Suspect() {
			n++
		}
		return t.Suspect() && n > p.suspects
	})
}

// Pick chooses n of the tasks, which must be sorted, the oldest first.
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
