package figures

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A CountFlag is a number given as the value of a flag, such as 10k, 1.5M or 1_000_000.
type CountFlag int

// String formats c, with k or M for trailing zeros.
func (c *CountFlag) String() string {
	n := int(*c)
	switch {
	case n != 0 && n%1_000_000 == 0:
		return strconv.Itoa(n/1_000_000) + "M"
	case n != 0 && n%1_000 == 0:
		return strconv.Itoa(n/1_000) + "k"
	}
	return strconv.Itoa(n)
}

// Set parses s, such as 4.1M. It does not multiply 4.1 by a million, because the
// floating-point product is not a whole number.
func (c *CountFlag) Set(s string) error {
	digits, scale := strings.ReplaceAll(s, "_", ""), ""
	switch {
	case strings.HasSuffix(digits, "k"), strings.HasSuffix(digits, "K"):
		digits, scale = digits[:len(digits)-1], "e3"
	case strings.HasSuffix(digits, "M"):
		digits, scale = digits[:len(digits)-1], "e6"
	}
	v, err := strconv.ParseFloat(digits+scale, 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
		return errors.New("not a whole number such as 5000, 10k or 1M")
	}
	*c = CountFlag(v)
	return nil
}

// Type returns the name of the type for the help text.
func (*CountFlag) Type() string { return "number" }

// CountsFlag is a list of numbers given as the value of a flag, such as 1M,10M.
type CountsFlag []int

// String formats the counts in the form that Set parses.
func (cs *CountsFlag) String() string {
	var parts []string
	for _, n := range *cs {
		parts = append(parts, (*CountFlag)(&n).String())
	}
	return strings.Join(parts, ",")
}

// Set parses s.
func (cs *CountsFlag) Set(s string) error {
	var parsed CountsFlag
	for part := range strings.SplitSeq(s, ",") {
		var c CountFlag
		if err := c.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		parsed = append(parsed, int(c))
	}
	*cs = parsed
	return nil
}

// Type returns the name of the type for the help text.
func (*CountsFlag) Type() string { return "numbers" }
