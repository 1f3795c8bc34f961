// Package clock is what the rest of the library needs of time: to read it, and to
// wake up at a moment.
//
// # Usage
//
// Programs rarely touch this package. A nil or absent clock means [System].
// Tests hand a virtual clock (package timertest) to whatever takes a [Clock].
//
// # Guarantees
//
// An [Alarm] never runs its function before the moment that it was set for, by the
// clock that made it.
//
// # Concurrency
//
// Every method may be called from any goroutine.
//
// # When not to use it
//
// It does not replace package time: it has no formatting, no parsing and no tickers,
// only what a scheduler needs.
package clock
