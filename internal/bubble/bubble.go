// Package bubble tells the fake time of a testing/synctest bubble from the system's time.
// Time in a bubble begins in the year 2000, and has no monotonic reading.
package bubble

import "time"

// Inside reports whether the calling goroutine is in a bubble.
func Inside() bool { return !Monotonic(time.Now()) }

// Monotonic reports whether t has a monotonic reading. Outside bubbles the result of
// time.Now has one. (Monotonic compares with !=, because Equal ignores the monotonic
// reading.)
func Monotonic(t time.Time) bool { return t != t.Round(0) }
