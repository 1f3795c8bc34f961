package store

import "slices"

// A Room limits how many tasks of one handler a claim gets.
type Room struct {
	// Most is the maximum for this handler.
	Most int
	// First is the handler's share, at most Most. A claim first gets due tasks within
	// the shares of their handlers, and then others.
	First int
}

// check validates the claim's numbers.
func (c *Claim) check() error {
	switch {
	case c.Max < 0 || c.Max > MaxClaim || c.Max > 0 && !c.Asked:
		return invalidf("the claim has a Max of %d, not from 0 to %d, or is not Asked", c.Max, MaxClaim)
	case c.Rooms != nil && len(c.Rooms) != len(c.Handlers):
		return invalidf("the claim has %d Rooms for %d handlers", len(c.Rooms), len(c.Handlers))
	case slices.ContainsFunc(c.Handlers, isBadName) || slices.ContainsFunc(c.Schedules, isBadName):
		return invalidf("the claim has a handler or a schedule whose name does not have " + nameRule)
	case c.Suspects < 0 || c.Suspects > c.Max:
		return invalidf("the claim has a number of %d Suspects, not from 0 to %d", c.Suspects, c.Max)
	}
	for _, r := range c.Rooms {
		if r.First < 0 || r.First > r.Most || r.Most > c.Max {
			return invalidf("the Room %+v needs First <= Most <= %d", r, c.Max)
		}
	}
	return nil
}
