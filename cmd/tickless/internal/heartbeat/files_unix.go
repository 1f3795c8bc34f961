//go:build unix

package heartbeat

import (
	"math"
	"syscall"
)

// fileLimit returns how many files the process may have open. Package os has
// raised it as far as it can be.
func fileLimit() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || uint64(r.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(r.Cur)
}
