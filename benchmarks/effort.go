package benchmarks

import (
	"os"
	"testing"
)

// choose returns what a workload is to do: next to nothing under -short, where
// it is only to be seen to work; what gives a figure within seconds; or, with
// TICKLESS_BENCH=full in the environment, what gives the figures to quote.
func choose[T any](short, quick, full T) T {
	switch {
	case testing.Short():
		return short
	case mode() == "full":
		return full
	}
	return quick
}

// mode is that of make bench.
func mode() string { return os.Getenv("TICKLESS_BENCH") }
