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
	sizes := choose([]int{1_000}, []int{100_000}, []int{100_000, 1_000_000})
	if mode() == "rates" {
		sizes = []int{1_000_000}
	}
	laterDelay := func(i int) time.Duration { return 19*time.Minute + longDelay(i) }
	for _, w := range []struct {
		name     string
		from, to func(int) time.Duration
	}{{"later", longDelay, laterDelay}, {"earlier", laterDelay, longDelay}} {
		for _, order := range []string{"turn", "random"} {
			b.Run(fmt.Sprintf("to=%s/order=%s", w.name, order), func(b *testing.B) {
				withPending(b, m, sizes, w.from, func(b *testing.B, p pendingTimers) { p.resetAll(b, order, w.to) })
			})
		}
	}
}

// resetAll resets b.N timers. Slot i gets the delay newDelay(i).
func (p *pendingTimers) resetAll(b *testing.B, order string, newDelay func(int) time.Duration) {
	slots := make([]int32, p.n)
	for i := range slots {
		slots[i] = int32(i)
	}
	if order == "random" {
		rng := rand.New(rand.NewPCG(3, 4))
		for g := range p.procs { // each goroutine has slots of its own
			first, count := p.slotsOf(g)
			rng.Shuffle(count, func(i, j int) {
				slots[first+i], slots[first+j] = slots[first+j], slots[first+i]
			})
		}
	}
	b.ResetTimer()
	b.StopTimer()
	for remaining := b.N; remaining > 0; remaining -= p.n {
		count := min(remaining, p.n)
		p.eachPart(slots, count, func(own []int32) {
			// Restore the first delays. Start the timers in slot order, so that a random
			// order of resets is not their order in memory.
			own = slices.Clone(own)
			slices.Sort(own)
			for _, slot := range own {
				p.impl.Stop(int(slot))
				p.impl.Start(int(slot), p.delay(int(slot)), nop)
			}
		})
		b.StartTimer()
		p.eachPart(slots, count, func(own []int32) {
			for _, slot := range own {
				p.impl.Reset(int(slot), newDelay(int(slot)))
			}
		})
		b.StopTimer()
	}
}

// eachPart divides n of the slots among the goroutines. It calls f on each goroutine with
// the goroutine's part.
func (p *pendingTimers) eachPart(slots []int32, n int, f func(own []int32)) {
	p.eachGoroutine(func(g int) {
		first, count := p.slotsOf(g)
		f(slots[first : first+min(count, n*(g+1)/p.procs-n*g/p.procs)])
	})
	flush(p.impl)
}
