// Package clock is the library's interface to time. A [Clock] tells the time, and makes
// alarms that call a function at a set moment.
//
// # Usage
//
// Most programs do not need this package. If no clock is given, the library uses
// [System]. Tests pass a virtual clock (package timertest) to whatever takes a [Clock].
// To implement a Clock, write Now and NewAlarm. A virtual one should return [MomentAlarm]s.
//
// # Guarantees
//
// An [Alarm] never runs its function before the moment that it is set for, by its own
// clock.
//
// # Concurrency
//
// Every method may be called from any goroutine.
//
// # When not to use it
//
// This package does not replace package time: it has no formatting, no parsing and no
// tickers.
package clock
