package peers

import (
	"slices"
	"testing"

	"github.com/tickless/tickless/benchmarks"
)

func BenchmarkRates(b *testing.B) {
	benchmarks.Each(b, append(slices.Clone(makers), benchmarks.TicklessSlack), benchmarks.Rates)
}

// BenchmarkExpirySlack compares timers with and without slack.
func BenchmarkExpirySlack(b *testing.B) {
	benchmarks.Each(b, []benchmarks.Maker{benchmarks.Time, benchmarks.Tickless, benchmarks.TicklessSlack}, benchmarks.Expiry)
}

func BenchmarkTickers(b *testing.B) { benchmarks.Tickers(b) }

func BenchmarkSweep(b *testing.B) { benchmarks.Sweep(b) }
