package benchmarks

import "time"

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
	// pending; whether it is started anew then is up to the implementation.
	Reset(slot int, d time.Duration) bool
	// Close stops every timer and ends what the implementation has running.
	Close()
}

// A Maker makes implementations of one kind.
type Maker struct {
	// Name appears in the benchmarks' names, as impl=Name.
	Name string
	// New returns an implementation with the given number of slots.
	New func(slots int) Impl
}
