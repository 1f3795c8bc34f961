//go:build !unix

package benchmarks

import "time"

// usage returns the user and system time of the process and its context
// switches, of its own will or not; ok is false where the system does not tell.
func usage() (cpu time.Duration, switches int64, ok bool) { return 0, 0, false }
