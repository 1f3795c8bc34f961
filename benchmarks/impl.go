package benchmarks

import (
	"testing"
	"time"
)

// An Impl is an implementation of timers. It has numbered slots, each for one pending
// timer. Two goroutines must not use the same slot at the same time.
type Impl interface {
	// Start starts a timer that calls f after d, on any goroutine. The slot must have
	// no pending timer.
	Start(slot int, d time.Duration, f func())
	// Stop stops the slot's timer and reports whether it prevented the callback.
	Stop(slot int) bool
	// Reset changes the deadline of the slot's pending timer to d from now. If the timer is
	// not pending, Reset returns false. Some implementations then start it.
	Reset(slot int, d time.Duration) bool
	// Close stops all timers and ends the implementation's goroutines.
	Close()
}

// A Flusher is an [Impl] whose calls may return before their work is done. Workloads call
// Flush before they stop the clock.
type Flusher interface {
	// Flush waits until the work of all earlier calls is done.
	Flush()
}

// flush calls impl's Flush, if it has one.
func flush(impl Impl) {
	if f, ok := impl.(Flusher); ok {
		f.Flush()
	}
}

// A SlotStarter is an [Impl] whose timers share one callback, which gets the timer's
// slot.
type SlotStarter interface {
	// StartFor is like Start, but calls f with the slot. The caller must always pass the
	// same f.
	StartFor(slot int, d time.Duration, f func(slot int))
}

// startWithSlot starts a timer that calls f(slot) after d.
func startWithSlot(impl Impl, slot int, d time.Duration, f func(slot int)) {
	if s, ok := impl.(SlotStarter); ok {
		s.StartFor(slot, d, f)
		return
	}
	impl.Start(slot, d, func() { f(slot) })
}

// Touched returns a slice whose pages are already in memory. An Impl keeps its handles in
// such a slice, so that Held measures only the timers' memory.
func Touched[T any](n int) []T {
	s := make([]T, n)
	var zero T
	for i := range s {
		s[i] = zero
	}
	return s
}

// A Maker makes instances of one implementation.
type Maker struct {
	// Name is the implementation's name in benchmark names: impl=Name.
	Name string
	// New returns an instance with the given number of slots.
	New func(slots int) Impl
	// Slow multiplies the time that workloads allow for starting timers before the first
	// one is due. 0 means 1.
	Slow int
}

// firstDeadline returns the first deadline of a workload. For an implementation that is
// slow to start timers, it is a multiple of the usual deadline.
func (m Maker) firstDeadline(usual time.Duration) time.Duration {
	return usual * time.Duration(max(m.Slow, 1))
}

// Makers returns package time, the baseline Heap, and this library with its two kinds of
// handles.
func Makers() []Maker { return []Maker{Time, Heap, Tickless, TicklessTimer} }

// Each runs a workload as a sub-benchmark for each of the makers.
func Each(b *testing.B, makers []Maker, workload func(*testing.B, Maker)) {
	for _, m := range makers {
		b.Run("impl="+m.Name, func(b *testing.B) { workload(b, m) })
	}
}
