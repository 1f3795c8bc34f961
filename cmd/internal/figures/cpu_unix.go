//go:build unix

package figures

import (
	"syscall"
	"time"
)

// CPUTime returns the user and system time of the process so far. ok is false if it is
// unknown.
func CPUTime() (cpu time.Duration, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
