//go:build !unix

package benchmarks

import "time"

// ownCPU returns 0: this system does not report the CPU time.
func ownCPU() time.Duration { return 0 }
