package peers

import (
	"testing"

	"github.com/tickless/tickless/benchmarks"
)

var makers = Makers()

func BenchmarkStartStop(b *testing.B) { benchmarks.Each(b, makers, benchmarks.StartStop) }
func BenchmarkChurn(b *testing.B)     { benchmarks.Each(b, makers, benchmarks.Churn) }
func BenchmarkHeld(b *testing.B)      { benchmarks.Each(b, makers, benchmarks.Held) }
func BenchmarkExpiry(b *testing.B)    { benchmarks.Each(b, makers, benchmarks.Expiry) }
func BenchmarkLateness(b *testing.B)  { benchmarks.Each(b, makers, benchmarks.Lateness) }
func BenchmarkStalls(b *testing.B)    { benchmarks.Each(b, makers, benchmarks.Stalls) }
