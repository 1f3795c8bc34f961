package executor

// Stats holds an executor's counts since it was made, and what it has now.
//
// While no callback is being submitted, taken or ended:
//
//	Submitted          = Run + Queued + Running
//	offered to Submit  = Submitted + Rejected
//
// A [Pool] counts under its lock and keeps the first equation at every
// moment, by counting a callback as run when its worker looks for the next.
type Stats struct {
	Submitted uint64 // accepted by Submit and SubmitBatch
	Run       uint64 // ended, be it by return, panic or runtime.Goexit
	Panicked  uint64 // of Run, those that panicked; a moment earlier than Run
	Rejected  uint64 // refused, with ErrOverloaded or ErrClosed
	CallerRan uint64 // of Submitted, those run by the submitting goroutine

	Queued  int // accepted and waiting
	Running int // begun and not ended

	Workers     int // goroutines that run callbacks now
	PeakWorkers int // the most there have been at one time
}
