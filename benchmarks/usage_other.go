//go:build !unix

package benchmarks

import "time"

// usage returns the user and system time of the process and its context switches,
// voluntary or not; ok is false if the system does not say.
func usage() (cpu time.Duration, switches int64, ok bool) { return 0, 0, false }
