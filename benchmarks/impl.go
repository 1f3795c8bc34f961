package benchmarks

import (
	"testing"
	"time"
)

// An Impl is an implementation of timers under test. It has a fixed number of slots,
// each of which holds at most one pending timer.
//
// Goroutines may use different slots at the same time, but only one goroutine at a time
// uses a slot.
type Impl interface {
	// Start starts the timer of slot, which must not have a pending one. The
	// implementation calls f once after d, on a goroutine of its choice.
	Start(slot int, d time.Duration, f func())
	// Stop stops the timer of slot and reports whether it prevented the callback.
	Stop(slot int) bool
	// Reset makes the pending timer of slot call its callback after d from now instead.
	// It returns false if the timer was no longer pending; the implementation may then
	// start it again or not.
	Reset(slot int, d time.Duration) bool
	// Close stops all timers and ends the implementation's goroutines.
	Close()
}

// A Flusher is an [Impl] whose Start, Stop and Reset only queue their work. The
// measurement ends when the work is done.
type Flusher interface {
	// Flush returns when all work that was queued before is done.
	Flush()
}

// flush waits until impl has done its queued work.
func flush(impl Impl) {
	if f, ok := impl.(Flusher); ok {
		f.Flush()
	}
}

// A SlotStarter is an [Impl] whose callbacks get their slot, so that all timers can
// share one function.
type SlotStarter interface {
	// StartFor is Start with a function that gets the slot. It is the same function for
	// all slots.
	StartFor(slot int, d time.Duration, f func(slot int))
}

// startFor starts the timer of slot, with a closure for the slot unless impl is a
// SlotStarter.
func startFor(impl Impl, slot int, d time.Duration, f func(slot int)) {
	if s, ok := impl.(SlotStarter); ok {
		s.StartFor(slot, d, f)
		return
	}
	impl.Start(slot, d, func() { f(slot) })
}

// Touched returns a slice for an Impl's handles. All its pages have been written, so
// that it does not count for any implementation, neither in the heap nor in the memory
// of the process.
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
	// Name appears in the benchmarks' names, as impl=Name.
	Name string
	// New returns an implementation with the given number of slots.
	New func(slots int) Impl
	// Slow is a factor for implementations that take long to start very many timers; 0
	// means 1. Workloads wait that many times as long before the first timer falls due.
	Slow int
}

// lead returns the time to start timers in before the first falls due. usual is the
// time for most implementations.
func (m Maker) lead(usual time.Duration) time.Duration {
	return usual * time.Duration(max(m.Slow, 1))
}

// Makers returns the implementations that need only the standard library and this
// module, package time first.
func Makers() []Maker { return []Maker{Time, Heap, Tickless, TicklessTimer} }

// Each runs a workload for every implementation in turn.
func Each(b *testing.B, makers []Maker, workload func(*testing.B, Maker)) {
	for _, m := range makers {
		b.Run("impl="+m.Name, func(b *testing.B) { workload(b, m) })
	}
}
