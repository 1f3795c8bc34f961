package peers

import (
	"time"

	"github.com/antlabs/timer"

	"github.com/tickless/tickless/benchmarks"
)

// Antlabs is the wheel of github.com/antlabs/timer, its default.
var Antlabs = benchmarks.Maker{Name: "antlabs", New: newAntlabs}

type antlabs struct {
	t     timer.Timer
	nodes []timer.TimeNoder
	ended chan struct{}
}

func newAntlabs(n int) benchmarks.Impl {
	a := &antlabs{timer.NewTimer(timer.WithTimeWheel()), touched[timer.TimeNoder](n), make(chan struct{})}
	go func() {
		defer close(a.ended)
		a.t.Run()
	}()
	return a
}

func (a *antlabs) Start(slot int, d time.Duration, f func()) { a.nodes[slot] = a.t.AfterFunc(d, f) }

func (a *antlabs) Stop(slot int) bool { return a.nodes[slot].Stop() }

func (a *antlabs) Reset(slot int, d time.Duration) bool { return a.nodes[slot].Reset(d) }

func (a *antlabs) Close() {
	a.t.Stop()
	<-a.ended
}
