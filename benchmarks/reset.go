package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Reset moves pending timers from 1-11 minutes to 20-30 (to=later), as activity does
// with an idle timeout, or the other way round (to=earlier), in the order in which they
// were started (order=turn) or at random. Before the measurement, the timers to move
// are stopped and started with their first delays.
func Reset(b *testing.B, m Maker) {
	sizes := choose([]int{1_000}, []int{100_000}, []int{100_000, 1_000_000})
	if mode() == "rates" {
		sizes = []int{1_000_000}
	}
	far := func(i int) time.Duration { return 19*time.Minute + longDelay(i) }
	for _, w := range []struct {
		name     string
		from, to func(int) time.Duration
	}{{"later", longDelay, far}, {"earlier", far, longDelay}} {
		for _, order := range []string{"turn", "random"} {
			b.Run(fmt.Sprintf("to=%s/order=%s", w.name, order), func(b *testing.B) {
				withPending(b, m, sizes, w.from, func(b *testing.B, p pending) { p.resetAll(b, order, w.to) })
			})
		}
	}
}

// resetAll moves b.N timers to the delays that to returns.
func (p *pending) resetAll(b *testing.B, order string, to func(int) time.Duration) {
	slots := make([]int32, p.n)
	for i := range slots {
		slots[i] = int32(i)
	}
	if order == "random" {
		rng := rand.New(rand.NewPCG(3, 4))
		for g := range p.procs { // each goroutine has slots of its own
			first, own := p.share(g)
			rng.Shuffle(own, func(i, j int) {
				slots[first+i], slots[first+j] = slots[first+j], slots[first+i]
			})
		}
	}
	b.ResetTimer()
	b.StopTimer()
	for todo := b.N; todo > 0; todo -= p.n {
		now := min(todo, p.n)
		p.some(slots, now, func(own []int32) {
			// Start them in slot order: otherwise they would be in memory in the order
			// in which they are moved.
			own = slices.Clone(own)
			slices.Sort(own)
			for _, slot := range own {
				p.impl.Stop(int(slot))
				p.impl.Start(int(slot), p.delay(int(slot)), nop)
			}
		})
		b.StartTimer()
		p.some(slots, now, func(own []int32) {
			for _, slot := range own {
				p.impl.Reset(int(slot), to(int(slot)))
			}
		})
		b.StopTimer()
	}
}

// some calls f in each goroutine with its part of n of the slots.
func (p *pending) some(slots []int32, n int, f func(own []int32)) {
	p.each(func(g int) {
		first, own := p.share(g)
		f(slots[first : first+min(own, n*(g+1)/p.procs-n*g/p.procs)])
	})
	flush(p.impl)
}
