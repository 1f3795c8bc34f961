package store

import "time"

// A Round is everything that a worker reports to a shard and requests from it at one
// time. Each part may be empty.
type Round struct {
	Reports []Report
	Extend  []Lease
	Claim   Claim
	// Lease is the duration of the leases that the round extends or gives. MaxCrashes
	// is how many attempts at a run may end with an expired lease before the run dies.
	// The store makes the run a dead letter; if the task repeats, the worker that gets
	// it with that many Crashes does. Both must be positive. The last of these crashes,
	// if it is not the first, counts only if the task was Alone: otherwise another task
	// may have caused it.
	Lease      time.Duration
	MaxCrashes int
	// Alone says that until their attempts end the worker runs nothing but the tasks
	// whose leases this round extends.
	Alone bool
	// Leave says that this is the worker's last round, so that another waiting worker
	// must watch the shard.
	Leave bool
	// More is for stores that delay rounds to send several together. More adds the
	// reports that have arrived during the delay. Such a store may call it once, after
	// the delay and before Do returns, with its own copy of the round. More does not
	// block. It may be nil, and other stores ignore it.
	More func(*Round)
}

// A Lease identifies a lease that a worker believes it holds.
type Lease struct {
	ID    string
	Token int64
}

// A Report says how an attempt ended. If its lease is no longer valid, the report is
// refused and has no effect. A round has at most one report for each task.
type Report struct {
	Lease
	End End
	// Next is when the task is due next, or zero if the End needs no time.
	Next When
	// Due is when the run was due. It differs from the claim's Due if the worker
	// skipped missed runs.
	Due Time
	// Text says why the attempt failed. At most MaxText bytes are kept.
	Text string
	// Keep must be set if [Task.Keeps] is true, so that the store need not check the
	// record of every task. Result is the result of a run that is Done and kept, of at
	// most MaxResult bytes.
	Keep   bool
	Result []byte
}

// An End says how an attempt ended.
type End uint8

const (
	// Done means that the run succeeded. With Next the task repeats and is due then.
	Done End = iota + 1
	// Retry means that the attempt failed and the task is tried again at Next, which is
	// required.
	Retry
	// Failed means that the run failed for good. With Next the task repeats and is due
	// then, and the run becomes a separate dead letter.
	Failed
	// HandBack means that the attempt does not count. The task is due at Next or,
	// without Next, at its previous time.
	HandBack
	// Dropped is Failed for a run whose handler was not called: the attempt does not
	// count.
	Dropped
)

// A Claim requests tasks.
//
// It gets up to Max due tasks whose handler is one of Handlers and whose schedule, if
// any, is one of Schedules. Tasks that have been due longest come first, within the
// limits of Rooms and Suspects and the handlers' [Limit]. Each task gets a lease and a
// token.
//
// If a round is repeated, its claim gets those of its tasks again whose leases are still
// valid, with the same tokens. Their leases start again. It gets no other tasks.
type Claim struct {
	// Asked says whether the round has a claim. A claim with a Max of 0 gets no tasks,
	// but ends attempts with expired leases and returns Answer.Next.
	Asked     bool
	Max       int // from 0 to MaxClaim
	Handlers  []string
	Schedules []string
	// Rooms has one element for each of Handlers, or is nil if each handler may have
	// Max tasks.
	Rooms    []Room
	Suspects Suspects
	// Full says that the worker has no place for more than Max tasks: the store wakes
	// other workers for the rest. Pass wakes them also for tasks that exceed Rooms.
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
	// Next is how long the worker should wait before it claims again, unless it is woken
	// earlier: until a task is due, a lease ends, or it must check for a lost wake-up. If
	// another worker watches the shard, Next is somewhat longer. It is negative if there
	// is nothing to wait for, and zero if only the claim's Max has left out due tasks.
	Next time.Duration
	// Paused says that claims get no tasks until Resume.
	Paused bool
	// Limited says that a handler's Concurrency holds back a task for which the claim has
	// room. The worker should claim with its next reports.
	Limited bool
}

// A Receipt is the result of a report.
type Receipt uint8

const (
	// Refused means that the lease is no longer valid. The report had no effect.
	Refused Receipt = iota
	// Accepted means that the attempt is over and the report had its effect.
	Accepted
	// Overtaken means that the attempt is over, but the task was cancelled or scheduled
	// again while it ran. That command took effect instead: the task is removed or
	// pending again, and there is neither a retry nor a dead letter.
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
	// Attempts and Crashes are those of the run before this attempt.
	Attempts int
	Crashes  int
}
