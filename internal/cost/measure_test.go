package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a cost is compared with: one that grows as it is said to is right, with some room,
// and what grows like the next of these is wrong.
func TestCost_Err(t *testing.T) {
	for _, c := range []struct {
		growth       Growth
		small, large float64
		ok           bool
	}{
		{Constant, 100, 100, true},
		{Constant, 100, 140, true},
		{Constant, 100, 200, false}, // as log n
		{Logarithmic, 80, 160, true},
		{Logarithmic, 80, 80 * 256, false},
		{Linear, 300, 300 * 256, true},
		{Linear, 300, 300 * 256 * 2, false}, // as n log n
		{Linear, 300, 300, false},           // nothing is counted
		{LinearAtMost, 300, 300, true},
		{LinearAtMost, 300, 300 * 512, false},
		{Linearithmic, 300, 300 * 512, true},
		{Linearithmic, 300, 300 * 65536, false}, // as n squared
		{Constant, 0, 0, false},
	} {
		err := Cost{&Op{Growth: c.growth, From: 1 << 8, To: 1 << 16}, c.small, c.large}.Err()
		require.Equal(t, c.ok, err == nil, "%s, %v to %v: %v", c.growth.name, c.small, c.large, err)
	}
}
