package alarm

import "sync/atomic"

// Rings counts how often the process's alarms rang, by what has woken the process, and
// how often there was no descriptor to be had.
type Rings struct {
	ByDescriptor, ByTimer, ByBackup, NoDescriptor uint64
}

// made is the process's hub, nil while there is none: whoever asks for the counts may be
// in a bubble, whose timers the hub must not have.
var made atomic.Pointer[hub]

// Counts returns the counts of the process's alarms.
func Counts() Rings {
	h := made.Load()
	if h == nil {
		return Rings{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rings
}
