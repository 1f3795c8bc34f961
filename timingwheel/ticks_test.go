package timingwheel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTicks_AgainstDivision(t *testing.T) {
	units := []int64{1, 2, 3, 5, 7, 10, 100, 1000, 4096, 100_000, 1_000_000, 999_983, 1e9, 3600e9, 1 << 31, 1<<31 + 1, 1 << 62, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for range 200 {
		units = append(units, rand.Int64N(1<<rand.IntN(63))+1)
	}
	for _, u := range units {
		k := newTickConverter(u, 0)
		phase := rand.Int64N(MaxPhase + 1)
		moved := newTickConverter(u, phase)
		ns := []int64{0, 1, u - 1, u, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / u * u, math.MaxInt64/u*u - 1}
		for range 200 {
			ns = append(ns, rand.Int64N(1<<rand.IntN(63)), rand.Int64())
		}
		for _, n := range ns {
			if got, want := k.floorTick(n), n/u; got != want {
				t.Fatalf("floor(%d) by %d = %d, want %d", n, u, got, want)
			}
			want := n / u
			if n%u != 0 {
				want++
			}
			if got := k.ceilTick(n, 0); got != want {
				t.Fatalf("ceil(%d) by %d = %d, want %d", n, u, got, want)
			}
			if got, want := moved.floorTick(n), satAdd(n/u, phase); got != want {
				t.Fatalf("floor(%d) by %d with phase %d = %d, want %d", n, u, phase, got, want)
			}
			if got, want := moved.ceilTick(n, 0), satAdd(want, phase); got != want {
				t.Fatalf("ceil(%d) by %d with phase %d = %d, want %d", n, u, phase, got, want)
			}
			if tick := n / u; tick <= math.MaxInt64-phase-1 {
				if got, want := moved.timeOfTick(tick+phase), k.timeOfTick(tick); got != want {
					t.Fatalf("time of tick %d by %d with phase %d = %d, want %d", tick, u, phase, got, want)
				}
			}
		}
	}
}
