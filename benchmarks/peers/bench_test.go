package peers

import (
	"testing"

	"github.com/tickless/tickless/benchmarks"
)

var makers = Makers()

func BenchmarkStartStop(b *testing.B) { benchmarks.Each(b, makers, benchmarks.StartStop) }
func BenchmarkChurn(b *testing.B)     { benchmarks.Each(b, makers, benchmarks.Churn) }
func BenchmarkReset(b *testing.B)     { benchmarks.Each(b, makers, benchmarks.Reset) }
func BenchmarkHeld(b *testing.B)      { benchmarks.Each(b, makers, benchmarks.Held) }
func BenchmarkExpiry(b *testing.B)    { benchmarks.Each(b, makers, benchmarks.Expiry) }

func BenchmarkBusyBurst(b *testing.B) { benchmarks.Each(b, makers, benchmarks.BusyBurst) }
func BenchmarkBusyRate(b *testing.B)  { benchmarks.Each(b, makers, benchmarks.BusyRate) }

// The other implementations are left out: they run callbacks one after another, or lose
// some.
func BenchmarkBusyQueue(b *testing.B) {
	benchmarks.Each(b, []benchmarks.Maker{benchmarks.Time, benchmarks.Tickless, benchmarks.TicklessTimer}, benchmarks.BusyQueue)
}

func BenchmarkHeartbeats(b *testing.B) {
	benchmarks.Each(b, append(makers[:len(makers):len(makers)], benchmarks.Monitor, benchmarks.Noted), benchmarks.Heartbeats)
}

func BenchmarkContext(b *testing.B)     { benchmarks.Context(b) }
func BenchmarkContextLive(b *testing.B) { benchmarks.ContextLive(b) }

// Here tickless uses a Timer, because a stopped Handle cannot be reset.
func BenchmarkStopReset(b *testing.B) {
	benchmarks.Each(b, []benchmarks.Maker{benchmarks.Time, {Name: "tickless", New: benchmarks.TicklessTimer.New}}, benchmarks.StopReset)
}
