package cli

import "strings"

// Counts is a list of counts, separated by commas, given as the value of a flag.
type Counts []int

// String formats the counts as Set parses them.
func (cs *Counts) String() string {
	var parts []string
	for _, n := range *cs {
		parts = append(parts, (*Count)(&n).String())
	}
	return strings.Join(parts, ",")
}

// Set parses s.
func (cs *Counts) Set(s string) error {
	var parsed Counts
	for part := range strings.SplitSeq(s, ",") {
		var c Count
		if err := c.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		parsed = append(parsed, int(c))
	}
	*cs = parsed
	return nil
}

// Type is the name of the value in the help text.
func (*Counts) Type() string { return "numbers" }
