package store

import "time"

// A Round is what a worker sends to a shard at one time: reports, leases to extend and
// a claim. Each part may be empty.
type Round struct {
	Reports []Report
	Extend  []Lease // leases to extend: each starts again, with its full duration
	Claim   Claim
	// Lease is the duration of the leases that the round extends or gives. It must be
	// positive.
	Lease time.Duration
	// MaxCrashes is how many crashes make a run a dead letter, at least 1. A crash is an
	// attempt whose lease has expired. Before its last crashes a run is a suspect: see
	// [IsSuspect].
	//
	// The store only counts the crashes of a repeating task: see [Dropped].
	MaxCrashes int
	// Worker is the worker's number, from 1 to MaxWorker. The tasks that the round claims then
	// name it: see [Entry]. It is the same in all rounds of a worker, and in all shards. Zero
	// means no number.
	Worker int64
	// About describes the worker to people, as text without control characters of at most
	// MaxAbout bytes. It is the same in all rounds of a sender.
	About string
	// Leave says that this is the worker's last round. If the store relied on this
	// worker to watch the shard for all workers, another worker must take over.
	Leave bool
	// More, if not nil, adds the reports that have arrived since the round was made. A
	// store that delays a round may call More once, with its own copy of the round,
	// before Do returns. More does not block.
	More func(*Round)
}

// A Lease identifies a lease that a worker has, or had if the store has ended it.
type Lease struct {
	ID    string
	Token int64
}

// A Report says how an attempt ended. If its lease is no longer valid, the report is
// refused and has no effect. A round has at most one report for each task.
type Report struct {
	Lease
	End End
	// Next is when the task is due next, or zero. Each [End] says whether it needs Next.
	Next When
	// Due is when the run was due. It differs from the claim's Due if the worker
	// skipped missed runs.
	Due Time
	// Text says why the attempt failed or was handed back. At most MaxText bytes are kept.
	// A HandBack without a Text leaves no trace.
	Text string
	// Keep must be true if [Task.ActsAtEnd] returns true for the task. Otherwise the store
	// does not keep the run, and adds no follow-up.
	Keep bool
	// Result is the result of a run that is kept, at most MaxResult bytes. It is only for
	// Done and Failed.
	Result []byte
}

// An End says how an attempt ended.
type End uint8

const (
	// Done means that the run succeeded. If Next is set, the task repeats and is due
	// again at Next.
	Done End = iota + 1
	// Retry means that the attempt failed. The task is tried again at Next, which is
	// required.
	Retry
	// Failed means that the run failed for good and becomes a dead letter. If Next is
	// set, the task repeats: besides the dead letter, it is due again at Next.
	Failed
	// HandBack means that the attempt does not count. The task is due at Next, or at
	// Due if there is no Next.
	HandBack
	// Dropped means Failed without a call of the handler, for example after too many
	// crashes: the attempt does not count.
	Dropped
)

// A Claim requests up to Max due tasks, the longest overdue first. Each task must have one
// of Handlers, and one of Schedules or no schedule. Rooms, Suspects and the handlers'
// [Limit] may exclude tasks. Each claimed task gets a lease and a token.
//
// If a round is repeated, its claim gets the same tasks and tokens again, with new leases,
// but not the tasks whose leases have ended.
type Claim struct {
	// Asked says whether the round has a claim. If Max is 0, the claim gets no tasks,
	// but ends attempts with expired leases and returns Answer.Next.
	Asked     bool
	Max       int // how many tasks the claim may get, from 0 to MaxClaim
	Handlers  []string
	Schedules []string
	// Rooms are the handlers that may have fewer than Max tasks, or that are Busy, in the
	// order of Handlers.
	Rooms []Room
	// Spare is how many of the Max tasks are only for handlers that have nothing to do: the
	// claim gets them last, at most one for each handler, and only for handlers that are
	// not Busy and of which it has no task yet.
	Spare int
	// Suspects is how many suspects the claim may get.
	Suspects int
	// OnlySuspect says that the worker runs no suspect. The claim may then get a suspect
	// whose next crash makes it a dead letter, as its only suspect.
	OnlySuspect bool
	// Full and Pass ask the store to wake other workers. Full: if more than Max due tasks
	// match the claim. Pass: if a due task has no room in the claim.
	Full, Pass bool
}

// An Answer is a store's answer to a round.
type Answer struct {
	// Now is the store's time.
	Now Time
	// Receipts has the result of each report.
	Receipts []Receipt
	// Extensions has the result of each extension.
	Extensions []Extension
	// Tasks are the claimed tasks.
	Tasks []Claimed
	// Next is how long the worker should wait before it claims again, unless it is
	// woken earlier. It is zero if more than Max due tasks match the claim, and negative
	// if there is nothing to wait for.
	Next time.Duration
	// Paused says that claims get no tasks until Resume.
	Paused bool
	// PausedHandlers are the claim's handlers that are paused, in the order of the claim.
	PausedHandlers []string
	// Limited says that the Concurrency of a handler or a group holds back a task for which
	// the claim has room. The worker should claim with its next reports.
	Limited bool
	// Suspects says whether a suspect waits that the claim was not allowed to get.
	Suspects WaitingSuspects
}

// A Receipt is the result of a report.
type Receipt uint8

const (
	// Refused means that the lease is no longer valid. The report had no effect.
	Refused Receipt = iota
	// Accepted means that the attempt is over and the report had its effect.
	Accepted
	// Overtaken means that the task was cancelled or scheduled again during the
	// attempt. Whatever the report says, the task is removed or pending at its new time.
	Overtaken
)

// An Extension is the result of extending a lease.
type Extension uint8

const (
	// Lost means that the lease is no longer valid. Another worker may run the task.
	Lost Extension = iota
	// Held means that the lease lasts for its full duration again.
	Held
	// HeldStopping is Held for a task that was cancelled during the attempt.
	HeldStopping
)

// A Claimed is a task that a claim got.
type Claimed struct {
	Task
	Token int64
	Due   Time // when the run was to begin
	// Attempts and Crashes count the run's earlier attempts.
	Attempts int
	Crashes  int
	Suspect  bool // see IsSuspect
	// Following says that the task is due again at a time that does not depend on this
	// run: see [Entry]. The worker must not skip this run. A repeated claim has the latest
	// value.
	Following bool
}
