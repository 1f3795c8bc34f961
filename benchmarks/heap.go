package benchmarks

import (
	"time"

	"github.com/tickless/tickless/benchmarks/internal/heaptimer"
)

// Heap is package heaptimer, whose operations take O(log n).
var Heap = Maker{Name: "heap", New: newHeap}

type heapImpl struct {
	timer   *heaptimer.Timer
	handles []heaptimer.Handle
}

func newHeap(slots int) Impl { return &heapImpl{heaptimer.New(), Touched[heaptimer.Handle](slots)} }

func (h *heapImpl) Start(slot int, d time.Duration, f func()) { h.handles[slot] = h.timer.Start(d, f) }

func (h *heapImpl) Stop(slot int) bool { return h.handles[slot].Stop() }

func (h *heapImpl) Reset(slot int, d time.Duration) bool { return h.handles[slot].Reset(d) }

func (h *heapImpl) Close() { h.timer.Close() }
