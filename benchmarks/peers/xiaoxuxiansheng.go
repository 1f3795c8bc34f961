package peers

import (
	"strconv"
	"time"

	"github.com/xiaoxuxiansheng/timewheel"

	"github.com/tickless/tickless/benchmarks"
)

// Xiaoxuxiansheng is github.com/xiaoxuxiansheng/timewheel, which identifies timers by
// keys and takes times of day. It does not report whether a timer was still pending.
// Reset adds the timer again.
var Xiaoxuxiansheng = benchmarks.Maker{Name: "xiaoxuxiansheng", New: newXiaoxuxiansheng, Slow: 4}

type xiaoxuxiansheng struct {
	w         *timewheel.TimeWheel
	keys      []string
	callbacks []func()
}

func newXiaoxuxiansheng(n int) benchmarks.Impl {
	x := &xiaoxuxiansheng{timewheel.NewTimeWheel(slots, coarseTick), make([]string, n), benchmarks.Touched[func()](n)}
	for slot := range x.keys {
		x.keys[slot] = strconv.Itoa(slot)
	}
	return x
}

func (x *xiaoxuxiansheng) Start(slot int, d time.Duration, f func()) {
	x.callbacks[slot] = f
	// A past time could become a negative index, with which the wheel panics.
	x.w.AddTask(x.keys[slot], f, time.Now().Add(max(d, coarseTick)))
}

func (x *xiaoxuxiansheng) Stop(slot int) bool {
	x.w.RemoveTask(x.keys[slot])
	return true
}

func (x *xiaoxuxiansheng) Reset(slot int, d time.Duration) bool {
	x.Start(slot, d, x.callbacks[slot])
	return true
}

// Flush returns when the wheel's goroutine has taken this request, and so has processed
// those before it.
func (x *xiaoxuxiansheng) Flush() { x.w.RemoveTask("") }

func (x *xiaoxuxiansheng) Close() { x.w.Stop() }
