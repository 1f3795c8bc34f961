//go:build !unix

package measure

import "time"

// CPUTime returns the user and system time of the process so far; ok is false
// where the system does not tell.
func CPUTime() (cpu time.Duration, ok bool) { return 0, false }
