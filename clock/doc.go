// Package clock says what the rest of the library needs of time: to read it
// and to be woken at a moment.
//
// # Usage
//
// Programs rarely touch this package. A nil or absent clock means [System].
// Tests hand a virtual clock (package timertest) to whatever takes a [Clock].
//
// # Guarantees
//
// An [Alarm] never runs its function before the moment it was set for, as the
// clock that made it tells the time.
//
// # Concurrency
//
// Every method may be called from any goroutine.
//
// # When not to use it
//
// It is no general substitute for package time: it has no formatting, no
// parsing and no tickers, just what a scheduler stands on.
package clock
