package executor

// Stats holds what an executor has counted since it was made, and its present state.
//
// At every moment:
//
//	Submitted          = Run + Queued + Running
//	offered to Submit  = Submitted + Rejected
//
// A worker of a [Pool] counts its callback as run only when it takes the next one.
type Stats struct {
	Submitted uint64 // accepted by Submit and SubmitBatch
	Run       uint64 // ended, by return, panic or runtime.Goexit
	Panicked  uint64 // ended by a panic; counted a moment before Run
	Rejected  uint64 // refused, because the executor was closed

	Queued  int // accepted and not begun
	Running int // begun and not ended

	Workers     int // goroutines that run callbacks now
	PeakWorkers int // the highest value of Workers so far
}
