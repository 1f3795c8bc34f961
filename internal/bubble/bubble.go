// Package bubble recognizes the fake time of a testing/synctest bubble: unlike the
// system's time, it has no monotonic reading.
package bubble

import "time"

// Inside reports whether the calling goroutine is in a bubble.
func Inside() bool { return !HasMonotonic(time.Now()) }

// HasMonotonic reports whether t has a monotonic reading, as the result of time.Now has
// outside bubbles. It uses !=, because Equal ignores the reading.
func HasMonotonic(t time.Time) bool { return t != t.Round(0) }
