package alarm

// Rings counts how often the process's alarms rang, by what has woken the process, and
// how often there was no descriptor to be had.
type Rings struct {
	ByDescriptor, ByTimer, ByBackup, NoDescriptor uint64
}

// Counts returns the counts of the process's alarms.
func Counts() Rings {
	h := process()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rings
}
