package peers

import (
	"testing"

	"github.com/tickless/tickless/benchmarks"
)

func BenchmarkRates(b *testing.B) {
	benchmarks.Each(b, append(benchmarks.Makers(), benchmarks.TicklessSlack), benchmarks.Rates)
}

func BenchmarkTickers(b *testing.B) { benchmarks.Tickers(b) }
