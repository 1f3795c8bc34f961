package store

// A Room is what a worker has for the tasks of one handler.
type Room struct {
	// Most is how many of them the claim gets at most.
	Most int
	// First is how many of them come before the tasks of other handlers that exceed their
	// own First: where the claim cannot get all, each handler has its share.
	First int
}

// Suspects says which tasks a claim gets of those whose attempts have crashed: one of them
// may have ended its worker, and would end the next one's other tasks too.
type Suspects uint8

const (
	AllSuspects Suspects = iota // as many as there are
	OneSuspect                  // one at most
	NoSuspect
)

// check looks at the claim's numbers.
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
