//go:build unix

package measure

import (
	"syscall"
	"time"
)

// ReadUsage returns what the process has used so far; ok is false where the
// system does not tell.
func ReadUsage() (u Usage, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, false
	}
	return Usage{
		CPU:      time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Switches: int64(r.Nvcsw) + int64(r.Nivcsw),
	}, true
}
