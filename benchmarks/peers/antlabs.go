package peers

import (
	"time"

	"github.com/antlabs/timer"

	"github.com/tickless/tickless/benchmarks"
)

// Antlabs is github.com/antlabs/timer. Reset stops the timer and starts a new one, because
// the library's own Reset may never return.
var Antlabs = benchmarks.Maker{Name: "antlabs", New: newAntlabs}

type antlabs struct {
	wheel     timer.Timer
	nodes     []timer.TimeNoder
	callbacks []func()
	ended     chan struct{}
}

func newAntlabs(n int) benchmarks.Impl {
	a := &antlabs{timer.NewTimer(timer.WithTimeWheel()), benchmarks.Touched[timer.TimeNoder](n), benchmarks.Touched[func()](n), make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.wheel.Run()
	}()
	return a
}

func (a *antlabs) Start(slot int, d time.Duration, f func()) {
	a.nodes[slot], a.callbacks[slot] = a.wheel.AfterFunc(d, f), f
}

func (a *antlabs) Stop(slot int) bool { return a.nodes[slot].Stop() }

func (a *antlabs) Reset(slot int, d time.Duration) bool {
	stopped := a.nodes[slot].Stop()
	a.nodes[slot] = a.wheel.AfterFunc(d, a.callbacks[slot])
	return stopped
}

func (a *antlabs) Close() {
	a.wheel.Stop()
	<-a.ended
}
