package benchmarks

import (
	"time"

	"github.com/tickless/tickless/benchmarks/internal/heaptimer"
)

// Heap is package heaptimer, whose operations take O(log n).
var Heap = Maker{Name: "heap", New: newHeap}

type heap struct {
	timer   *heaptimer.Timer
	handles []heaptimer.Handle
}

func newHeap(slots int) Impl { return &heap{heaptimer.New(), Touched[heaptimer.Handle](slots)} }

func (h *heap) Start(slot int, d time.Duration, f func()) { h.handles[slot] = h.timer.Start(d, f) }

func (h *heap) Stop(slot int) bool { return h.handles[slot].Stop() }

func (h *heap) Reset(slot int, d time.Duration) bool { return h.handles[slot].Reset(d) }

func (h *heap) Close() { h.timer.Close() }
