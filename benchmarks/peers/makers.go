package peers

import (
	"time"

	"github.com/tickless/tickless/benchmarks"
)

const tick = time.Millisecond

// coarseTick and slots configure the two libraries whose wheel has one level. They fall
// behind with a finer tick.
const (
	coarseTick = 10 * time.Millisecond
	slots      = 1 << 13
)

// Rivals returns the implementations with other libraries.
func Rivals() []benchmarks.Maker {
	return []benchmarks.Maker{RussellLuo, Antlabs, GoZero, Xiaoxuxiansheng}
}

// Makers returns all implementations: those of package benchmarks, then the rivals.
func Makers() []benchmarks.Maker { return append(benchmarks.Makers(), Rivals()...) }
