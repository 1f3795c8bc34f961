package peers

import (
	"time"

	"github.com/RussellLuo/timingwheel"

	"github.com/tickless/tickless/benchmarks"
)

// RussellLuo is github.com/RussellLuo/timingwheel. It has no reset: Reset stops the timer
// and starts a new one.
var RussellLuo = benchmarks.Maker{Name: "RussellLuo", New: newRussellLuo}

type russellLuo struct {
	wheel     *timingwheel.TimingWheel
	timers    []*timingwheel.Timer
	callbacks []func()
}

func newRussellLuo(n int) benchmarks.Impl {
	w := timingwheel.NewTimingWheel(tick, 256)
	w.Start()
	return &russellLuo{w, benchmarks.Touched[*timingwheel.Timer](n), benchmarks.Touched[func()](n)}
}

func (r *russellLuo) Start(slot int, d time.Duration, f func()) {
	r.timers[slot], r.callbacks[slot] = r.wheel.AfterFunc(d, f), f
}

func (r *russellLuo) Stop(slot int) bool { return r.timers[slot].Stop() }

func (r *russellLuo) Reset(slot int, d time.Duration) bool {
	if !r.timers[slot].Stop() {
		return false
	}
	r.timers[slot] = r.wheel.AfterFunc(d, r.callbacks[slot])
	return true
}

func (r *russellLuo) Close() { r.wheel.Stop() }
