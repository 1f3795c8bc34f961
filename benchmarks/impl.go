package benchmarks

import (
	"testing"
	"time"
)

// An Impl is one implementation of timers under test. It has a fixed number
// of slots, each of which holds at most one pending timer.
//
// Goroutines may use different slots at the same time; a slot is used by one
// goroutine at a time.
type Impl interface {
	// Start starts the timer of slot, which holds none that is pending. It
	// calls f once after d, where the implementation runs its callbacks.
	Start(slot int, d time.Duration, f func())
	// Stop stops the timer of slot and reports whether that kept its callback
	// from running.
	Stop(slot int) bool
	// Reset makes the timer of slot, which is pending, call its callback
	// after d from now instead. It reports false if the timer was no longer
	// pending; whether it is started again is up to the implementation.
	Reset(slot int, d time.Duration) bool
	// Close stops every timer and ends what the implementation has running.
	Close()
}

// A Flusher is an [Impl] whose Start, Stop and Reset only queue what is to be
// done. It is timed until that is done.
type Flusher interface {
	// Flush returns when everything is done that was queued before.
	Flush()
}

// flush waits until impl has done what it was asked.
func flush(impl Impl) {
	if f, ok := impl.(Flusher); ok {
		f.Flush()
	}
}

// A SlotStarter is an [Impl] whose callbacks are told whose they are, so that
// one function does for all timers.
type SlotStarter interface {
	// StartFor is Start with a function that is called with the slot. It is the
	// same for all slots.
	StartFor(slot int, d time.Duration, f func(slot int))
}

// startFor starts the timer of slot, with a function of its own if impl wants
// one.
func startFor(impl Impl, slot int, d time.Duration, f func(slot int)) {
	if s, ok := impl.(SlotStarter); ok {
		s.StartFor(slot, d, f)
		return
	}
	impl.Start(slot, d, func() { f(slot) })
}

// Touched returns a slice for an Impl's handles, every page of which has been
// written: it counts for nobody, neither in the heap nor in what the process
// has of the machine's memory.
func Touched[T any](n int) []T {
	s := make([]T, n)
	var zero T
	for i := range s {
		s[i] = zero
	}
	return s
}

// A Maker makes implementations of one kind.
type Maker struct {
	// Name appears in the benchmarks' names, as impl=Name.
	Name string
	// New returns an implementation with the given number of slots.
	New func(slots int) Impl
	// Slow says how many times as long as others it may take to start very many
	// timers; 0 is once. Workloads that have timers fall due wait that much
	// longer for the first.
	Slow int
}

// lead returns the time to start timers in before the first falls due, where
// most implementations need no more than usual.
func (m Maker) lead(usual time.Duration) time.Duration {
	return usual * time.Duration(max(m.Slow, 1))
}

// Makers returns the implementations that need nothing but the standard library
// and this module, package time first.
func Makers() []Maker { return []Maker{Time, Heap, Tickless, TicklessTimer} }

// Each runs a workload for every implementation in turn.
func Each(b *testing.B, makers []Maker, workload func(*testing.B, Maker)) {
	for _, m := range makers {
		b.Run("impl="+m.Name, func(b *testing.B) { workload(b, m) })
	}
}
