package measure

import "time"

// Usage is what the operating system counts for a process.
type Usage struct {
	CPU      time.Duration // user and system
	Switches int64         // of context, voluntary or not
}

// CPUTime returns the user and system time of the process so far; ok is false
// where the system does not tell.
func CPUTime() (cpu time.Duration, ok bool) {
	u, ok := ReadUsage()
	return u.CPU, ok
}

// OwnCPUScale returns by how much a load is cut down to tell what CPU time it
// takes by itself: a quarter is enough, and two seconds of a long one are.
func OwnCPUScale(duration time.Duration) time.Duration {
	return max(4, duration/(2*time.Second))
}
