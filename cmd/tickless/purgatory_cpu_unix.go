//go:build unix

package main

import (
	"syscall"
	"time"
)

// processCPU returns the CPU time that the process has used so far; ok is false
// where the system does not tell.
func processCPU() (cpu time.Duration, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
