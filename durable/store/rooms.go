package store

// A Room limits how many tasks of one handler a claim gets.
type Room struct {
	// Most is the maximum for this handler.
	Most int
	// First is how many of the handler's tasks precede the tasks of other handlers
	// beyond their own First. So each handler gets its share if the claim cannot get
	// all due tasks.
	First int
}

// Suspects says how many suspects a claim gets. A suspect is a task with crashed
// attempts: it may have ended its worker, and would then end the next worker's other
// tasks too.
type Suspects uint8

const (
	AllSuspects Suspects = iota // as many as there are
	OneSuspect                  // one at most
	NoSuspect
)

// check validates the claim's numbers.
func (c *Claim) check() error {
	switch {
	case c.Max < 0 || c.Max > MaxClaim || c.Max > 0 && !c.Asked:
		return invalid("a claim of %d tasks, not from 0 to %d", c.Max, MaxClaim)
	case c.Rooms != nil && len(c.Rooms) != len(c.Handlers):
		return invalid("a claim with %d rooms for %d handlers", len(c.Rooms), len(c.Handlers))
	case c.Suspects > NoSuspect:
		return invalid("there is no Suspects of %d", c.Suspects)
	}
	for _, r := range c.Rooms {
		if r.First < 0 || r.First > r.Most || r.Most > c.Max {
			return invalid("a room of %+v", r)
		}
	}
	return nil
}
