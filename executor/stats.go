package executor

// Stats holds an executor's counts since it was made, and what it has now.
//
// At every moment:
//
//	Submitted          = Run + Queued + Running
//	offered to Submit  = Submitted + Rejected
//
// A worker of a [Pool] counts a callback as run when it looks for the next.
type Stats struct {
	Submitted uint64 // accepted by Submit and SubmitBatch
	Run       uint64 // ended, be it by return, panic or runtime.Goexit
	Panicked  uint64 // of Run, those that panicked; a moment earlier than Run
	Rejected  uint64 // refused, since the executor was closed

	Queued  int // accepted and waiting
	Running int // begun and not ended

	Workers     int // goroutines that run callbacks now
	PeakWorkers int // the most there have been at one time
}
