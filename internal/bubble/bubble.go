// Package bubble tells the fake time of a testing/synctest bubble from the
// system's. A bubble's clock begins in the year 2000, and its readings have no
// monotonic part.
package bubble

import "time"

// Inside reports whether the calling goroutine is in a bubble.
func Inside() bool { return !Monotonic(time.Now()) }

// Monotonic reports whether t has a monotonic reading, as what time.Now returns
// outside bubbles has. (== is meant: Equal does not see the difference.)
func Monotonic(t time.Time) bool { return t != t.Round(0) }
