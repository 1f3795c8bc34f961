package peers

import (
	"strconv"
	"time"

	"github.com/xiaoxuxiansheng/timewheel"

	"github.com/tickless/tickless/benchmarks"
)

// Xiaoxuxiansheng is github.com/xiaoxuxiansheng/timewheel. Stop and Reset always return
// true, because the library does not report whether the timer was pending.
var Xiaoxuxiansheng = benchmarks.Maker{Name: "xiaoxuxiansheng", New: newXiaoxuxiansheng, Slow: 4}

type xiaoxuxiansheng struct {
	wheel     *timewheel.TimeWheel
	keys      []string
	callbacks []func()
}

func newXiaoxuxiansheng(n int) benchmarks.Impl {
	x := &xiaoxuxiansheng{timewheel.NewTimeWheel(coarseSlots, coarseTick), make([]string, n), benchmarks.Touched[func()](n)}
	for slot := range x.keys {
		x.keys[slot] = strconv.Itoa(slot)
	}
	return x
}

func (x *xiaoxuxiansheng) Start(slot int, d time.Duration, f func()) {
	x.callbacks[slot] = f
	// At least a tick from now: for a time in the past the wheel may panic.
	x.wheel.AddTask(x.keys[slot], f, time.Now().Add(max(d, coarseTick)))
}

func (x *xiaoxuxiansheng) Stop(slot int) bool {
	x.wheel.RemoveTask(x.keys[slot])
	return true
}

func (x *xiaoxuxiansheng) Reset(slot int, d time.Duration) bool {
	x.Start(slot, d, x.callbacks[slot])
	return true
}

// Flush sends a request that does nothing. The wheel's goroutine receives it when it has
// processed all earlier requests.
func (x *xiaoxuxiansheng) Flush() { x.wheel.RemoveTask("") }

func (x *xiaoxuxiansheng) Close() { x.wheel.Stop() }
