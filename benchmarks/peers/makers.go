package peers

import (
	"time"

	"github.com/tickless/tickless/benchmarks"
)

const tick = time.Millisecond

// The configuration of the two wheels with one level, which cannot keep up with a shorter
// tick.
const (
	coarseTick  = 10 * time.Millisecond
	coarseSlots = 1 << 13
)

// Rivals returns the other libraries.
func Rivals() []benchmarks.Maker {
	return []benchmarks.Maker{RussellLuo, Antlabs, GoZero, Xiaoxuxiansheng}
}

// Makers returns the implementations of package benchmarks and the other libraries.
func Makers() []benchmarks.Maker { return append(benchmarks.Makers(), Rivals()...) }
