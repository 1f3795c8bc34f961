package benchmarks

import (
	"os"
	"testing"
)

// choose returns a size for a workload:
//
//   - short under -short, where a workload is only tested
//   - full if TICKLESS_BENCH=full is in the environment, for figures to publish
//   - else quick, for a figure within seconds
func choose[T any](short, quick, full T) T {
	switch {
	case testing.Short():
		return short
	case mode() == "full":
		return full
	}
	return quick
}

// mode returns the MODE that make bench was called with.
func mode() string { return os.Getenv("TICKLESS_BENCH") }
