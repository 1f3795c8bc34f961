package benchmarks

import (
	"os"
	"testing"
)

// choose returns the size of a workload:
//
//   - short with the flag -short
//   - full with TICKLESS_BENCH=full in the environment
//   - quick otherwise
func choose[T any](short, quick, full T) T {
	switch {
	case testing.Short():
		return short
	case benchMode() == "full":
		return full
	}
	return quick
}

// benchMode returns the MODE that make bench was called with.
func benchMode() string { return os.Getenv("TICKLESS_BENCH") }
