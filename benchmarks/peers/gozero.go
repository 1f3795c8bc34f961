package peers

import (
	"time"

	"github.com/zeromicro/go-zero/core/collection"

	"github.com/tickless/tickless/benchmarks"
)

// GoZero is the TimingWheel of github.com/zeromicro/go-zero. Stop and Reset always return
// true, because the library does not report whether the timer was pending.
var GoZero = benchmarks.Maker{Name: "go-zero", New: newGoZero, Slow: 4}

type goZero struct {
	wheel *collection.TimingWheel
	keys  []any
}

func newGoZero(n int) benchmarks.Impl {
	w, err := collection.NewTimingWheel(coarseTick, coarseSlots, func(key, f any) {
		switch f := f.(type) {
		case func():
			f()
		case func(int):
			f(key.(int))
		}
	})
	if err != nil {
		panic(err)
	}
	g := &goZero{w, make([]any, n)}
	for slot := range g.keys {
		g.keys[slot] = slot
	}
	return g
}

// Start raises d to a nanosecond, the shortest delay that the wheel accepts.
func (g *goZero) Start(slot int, d time.Duration, f func()) {
	must(g.wheel.SetTimer(g.keys[slot], f, max(d, 1)))
}

func (g *goZero) StartFor(slot int, d time.Duration, f func(int)) {
	must(g.wheel.SetTimer(g.keys[slot], f, d))
}

func (g *goZero) Stop(slot int) bool {
	must(g.wheel.RemoveTimer(g.keys[slot]))
	return true
}

func (g *goZero) Reset(slot int, d time.Duration) bool {
	must(g.wheel.MoveTimer(g.keys[slot], d))
	return true
}

// Flush sends a request that does nothing. The wheel's goroutine receives it when it has
// processed all earlier requests.
func (g *goZero) Flush() { must(g.wheel.RemoveTimer(-1)) }

func (g *goZero) Close() { g.wheel.Stop() }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
