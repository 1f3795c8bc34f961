package byvalue

import (
	"time"
	"unsafe"
)

type held struct{ t time.Timer }

func (h *held) start() {
	h.t = *time.NewTimer(1) // want `time.NewTimer stays: a time.Timer by value`
	h.t.Stop()
}

func copied() {
	t := time.NewTimer(1) // want `time.NewTimer stays: a time.Timer is copied`
	u := *t
	u.Stop()
}

func pointer() {
	t := time.NewTimer(1) // want `time.NewTimer stays: it becomes an unsafe.Pointer`
	t.Stop()
	_ = unsafe.Pointer(t)
}

// Zero values and fakes have no value that is copied.
func zero() []*time.Timer {
	t := new(time.Timer)
	u := &time.Timer{C: make(chan time.Time)}
	var v *time.Timer
	w := (*time.Timer)(nil)
	x := time.NewTimer(1) // want `stays: a time.Timer by value: a timer.Timer must not be copied`
	x.Stop()
	return []*time.Timer{t, u, v, w, x}
}
