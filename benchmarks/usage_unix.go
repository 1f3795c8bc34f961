//go:build unix

package benchmarks

import (
	"syscall"
	"time"
)

// readUsage returns the process's user and system time and its context switches. ok is
// false if the system does not report them.
func readUsage() (cpu time.Duration, switches int64, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Nvcsw) + int64(r.Nivcsw), true
}
