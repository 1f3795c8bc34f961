package cli

import "time"

// LessOwn returns the CPU time of a run less that of its load alone, as a Figure's
// value; ok is false if either is unknown, or if the run was interrupted.
func LessOwn(cpu, own *time.Duration, interrupted bool) (v float64, ok bool) {
	if cpu == nil || own == nil || interrupted {
		return 0, false
	}
	return float64(max(0, *cpu-*own)), true
}
