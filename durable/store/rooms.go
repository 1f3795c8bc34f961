package store

import "slices"

// A Room limits how many tasks of one handler a claim gets.
type Room struct {
	// Handler is the handler's index in Claim.Handlers.
	Handler int
	// Most is the maximum for this handler. It equals Claim.Max if there is no other.
	Most int
	// Busy says that the worker runs tasks of the handler: see Claim.Spare.
	Busy bool
}

func (c *Claim) check() error {
	switch {
	case c.Max < 0 || c.Max > MaxClaim || c.Max > 0 && !c.Asked:
		return invalidf("the claim has a Max of %d, not from 0 to %d, or is not Asked", c.Max, MaxClaim)
	case c.Spare < 0 || c.Spare > c.Max:
		return invalidf("the claim has a Spare of %d, not from 0 to %d", c.Spare, c.Max)
	case slices.ContainsFunc(c.Handlers, isBadName) || slices.ContainsFunc(c.Schedules, isBadName):
		return invalidf("the claim has a handler or a schedule whose name does not have " + nameRule)
	case c.Suspects < 0 || c.Suspects > c.Max:
		return invalidf("the claim has a number of %d Suspects, not from 0 to %d", c.Suspects, c.Max)
	}
	for i, r := range c.Rooms {
		if r.Most < 0 || r.Most > c.Max || r.Handler < 0 || r.Handler >= len(c.Handlers) || i > 0 && r.Handler <= c.Rooms[i-1].Handler {
			return invalidf("the Room %+v needs a larger Handler than the one before, below %d, and a Most from 0 to %d", r, len(c.Handlers), c.Max)
		}
	}
	return nil
}
