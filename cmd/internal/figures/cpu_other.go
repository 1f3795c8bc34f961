//go:build !unix

package figures

import "time"

// CPUTime returns the user and system time of the process so far. ok is false if it is
// unknown.
func CPUTime() (cpu time.Duration, ok bool) { return 0, false }
