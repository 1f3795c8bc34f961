//go:build !unix

package benchmarks

import "time"

// ownCPU is not measured here.
func ownCPU() time.Duration { return 0 }
