package cli

import "strings"

// Counts is a flag's value of several counts, written with commas between.
type Counts []int

// String writes them as the flag is written.
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

// Type names the value in the help.
func (*Counts) Type() string { return "numbers" }
