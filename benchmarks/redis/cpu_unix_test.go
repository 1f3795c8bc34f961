//go:build unix

package benchmarks

import (
	"syscall"
	"time"
)

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
