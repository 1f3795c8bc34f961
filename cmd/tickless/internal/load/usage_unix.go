//go:build unix

package load

import (
	"syscall"
	"time"
)

// readUsage returns what the process has used so far; ok is false where the
// system does not tell.
func readUsage() (u usage, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, false
	}
	return usage{
		cpu:      time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		switches: int64(r.Nvcsw) + int64(r.Nivcsw),
	}, true
}
