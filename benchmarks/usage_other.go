//go:build !unix

package benchmarks

import "time"

// readUsage returns the process's user and system time and its context switches. ok is
// false: this system does not report them.
func readUsage() (cpu time.Duration, switches int64, ok bool) { return 0, 0, false }
