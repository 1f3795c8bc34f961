//go:build !unix

package heartbeat

import "math"

// fileLimit returns how many files the process may have open, as far as known.
func fileLimit() int { return math.MaxInt32 }
