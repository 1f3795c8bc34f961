package benchmarks

import (
	"time"

	"github.com/tickless/tickless/benchmarks/internal/hashedwheel"
)

// Hashed is the baseline of the usual timing wheel: one level of slots, rounds,
// and a tick that never stops, as Netty's and go-zero's have it. The tick is a
// millisecond, about the precision of package time, and a round a minute, so
// that timers of some minutes have few rounds to wait. Callbacks run on the
// wheel's goroutine.
var Hashed = Maker{Name: "hashed", New: newHashed}

type hashed struct {
	w       *hashedwheel.Wheel
	handles []hashedwheel.Handle
}

func newHashed(slots int) Impl {
	w := hashedwheel.New(hashedwheel.Config{Tick: time.Millisecond, Slots: 1 << 16})
	return &hashed{w, Touched[hashedwheel.Handle](slots)}
}

func (h *hashed) Start(slot int, d time.Duration, f func()) {
	handle, err := h.w.Start(d, f)
	if err != nil {
		panic(err) // it is neither stopped nor bounded
	}
	h.handles[slot] = handle
}

func (h *hashed) Stop(slot int) bool { return h.handles[slot].Stop() }

func (h *hashed) Reset(slot int, d time.Duration) bool { return h.handles[slot].Reset(d) }

func (h *hashed) Close() { h.w.Stop() }
