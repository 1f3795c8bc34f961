package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Reset measures resetting pending timers. A short delay is 1 to 11 minutes, a long one 20
// to 30 minutes.
//
//   - to=later: from a short delay to a long one
//   - to=earlier: from a long delay to a short one
//   - order=turn: in the order in which they were started
//   - order=random: in random order
func Reset(b *testing.B, m Maker) {
	timerCounts := choose([]int{1_000}, []int{100_000}, []int{100_000, 1_000_000})
	if benchMode() == "rates" {
		timerCounts = []int{1_000_000}
	}
	longerDelay := func(i int) time.Duration { return 19*time.Minute + randomDelay(i) }
	for _, w := range []struct {
		name     string
		from, to func(int) time.Duration
	}{{"later", randomDelay, longerDelay}, {"earlier", longerDelay, randomDelay}} {
		for _, order := range []string{"turn", "random"} {
			b.Run(fmt.Sprintf("to=%s/order=%s", w.name, order), func(b *testing.B) {
				withPendingTimers(b, m, timerCounts, w.from, func(b *testing.B, p pendingTimers) { p.resetTimers(b, order, w.to) })
			})
		}
	}
}

// resetTimers resets b.N timers. Slot i gets the delay newDelay(i).
func (p *pendingTimers) resetTimers(b *testing.B, order string, newDelay func(int) time.Duration) {
	slotOrder := make([]int32, p.n)
	for i := range slotOrder {
		slotOrder[i] = int32(i)
	}
	if order == "random" {
		rng := rand.New(rand.NewPCG(3, 4))
		for g := range p.procs { // each goroutine has slots of its own
			first, count := p.slotsOfGoroutine(g)
			rng.Shuffle(count, func(i, j int) {
				slotOrder[first+i], slotOrder[first+j] = slotOrder[first+j], slotOrder[first+i]
			})
		}
	}
	b.ResetTimer()
	b.StopTimer()
	for remaining := b.N; remaining > 0; remaining -= p.n {
		resetCount := min(remaining, p.n)
		p.forEachGoroutinePart(slotOrder, resetCount, func(own []int32) {
			// Restore the first delays. Start the timers in slot order, so that a random
			// order of resets is not their order in memory.
			own = slices.Clone(own)
			slices.Sort(own)
			for _, slot := range own {
				p.impl.Stop(int(slot))
				p.impl.Start(int(slot), p.delay(int(slot)), doNothing)
			}
		})
		b.StartTimer()
		p.forEachGoroutinePart(slotOrder, resetCount, func(own []int32) {
			for _, slot := range own {
				p.impl.Reset(int(slot), newDelay(int(slot)))
			}
		})
		b.StopTimer()
	}
}

// forEachGoroutinePart divides n of the slots among the goroutines. It calls f on each
// goroutine with the slots of its part.
func (p *pendingTimers) forEachGoroutinePart(slots []int32, n int, f func(own []int32)) {
	p.onEachGoroutine(func(g int) {
		first, count := p.slotsOfGoroutine(g)
		f(slots[first : first+min(count, n*(g+1)/p.procs-n*g/p.procs)])
	})
	flush(p.impl)
}
