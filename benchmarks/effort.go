package benchmarks

import (
	"os"
	"testing"
)

// choose returns the amount of work: very little under -short, where a workload is only
// tested, an amount that gives a figure within seconds or, with TICKLESS_BENCH=full in
// the environment, one that gives figures to quote.
func choose[T any](short, quick, full T) T {
	switch {
	case testing.Short():
		return short
	case mode() == "full":
		return full
	}
	return quick
}

// mode returns the mode of make bench.
func mode() string { return os.Getenv("TICKLESS_BENCH") }
