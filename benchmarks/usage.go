package benchmarks

import "time"

// cpuTime returns the user and system time of the process. ok is false if the system does
// not report it.
func cpuTime() (cpu time.Duration, ok bool) {
	cpu, _, ok = readUsage()
	return cpu, ok
}
