package store

import "time"

// A Round is what a worker has to say to a shard, and to ask of it, at one time. Each
// part may be empty.
type Round struct {
	Reports []Report
	Extend  []Lease
	Claim   Claim
	// Lease is how long leases last that the round extends or gives, and MaxCrashes
	// how many attempts at a run may end with their lease before the run dies: the store
	// sees to it, and, of a task that repeats, the worker that gets it with so many Crashes.
	// Both must be positive. The last of so many Crashes, if it is not the first, counts only
	// if the task was Alone: before, its neighbour may have been to blame.
	Lease      time.Duration
	MaxCrashes int
	// Alone says that the worker runs nothing but the tasks whose leases it extends with the
	// round, from now until their attempts end.
	Alone bool
	// Leave says that the worker will not come again: who else waits for the shard is
	// to watch it.
	Leave bool
	// More, if it is not nil, is for stores that have rounds wait for one another: it adds
	// reports that have come meanwhile. A store may call it once, when the waiting is
	// over, with its own copy of the round, but not after Do has returned. It returns at
	// once. Other stores leave it alone.
	More func(*Round)
}

// A Lease names a lease that a worker believes it holds.
type Lease struct {
	ID    string
	Token int64
}

// A Report says how an attempt has ended. If its lease is no more, or another one has
// it, the report is refused, and nothing is done. A round has one report on a task at
// most.
type Report struct {
	Lease
	End End
	// Next is when the task is due next; zero if the End needs none.
	Next When
	// Due is when the run was due, which is another moment than the claim said if
	// missed runs were left out.
	Due Time
	// Text is why it failed; MaxText bytes of it are kept.
	Text string
	// Keep says that the task asks to keep something, as [Task.Keeps] says: else the store
	// need not look. Result is what the worker says of a run that is Done and kept, of
	// MaxResult bytes at most.
	Keep   bool
	Result []byte
}

// An End is how an attempt has ended.
type End uint8

const (
	// Done: the run is over. With Next the task repeats, and is due then.
	Done End = iota + 1
	// Retry: the attempt failed, and the next one is due at Next, which it must have.
	Retry
	// Failed: the run failed for good. With Next the task repeats, is due then, and
	// the run becomes a dead letter of its own.
	Failed
	// HandBack: the attempt does not count. The task is due at Next, or else when it
	// was.
	HandBack
	// Dropped is Failed for a run that was not begun: the attempt does not count.
	Dropped
)

// A Claim asks for tasks.
//
// It gets up to Max tasks that are due, that name one of Handlers and, if they name a
// schedule, one of Schedules; those that have been due longest come first, within Rooms and
// Suspects. Each gets a lease for the worker, and a token.
//
// It gets no more of a handler than its [Limit] allows.
//
// A round that is repeated gets the tasks once more, with their tokens, that still have
// the leases which it gave them, and these last from now on again. It gets no others.
type Claim struct {
	// Asked is whether there is a claim. One with a Max of 0 gets nothing, but learns
	// what Answer.Next says, and takes back leases that have run out.
	Asked     bool
	Max       int // from 0 to MaxClaim
	Handlers  []string
	Schedules []string
	// Rooms has what there is for each of Handlers, or is nil: then each may have Max.
	Rooms    []Room
	Suspects Suspects
	// Full says that the worker has no place for more than Max: others are woken for
	// what is left. Pass has them woken too for what it has no room for.
	Full, Pass bool
}

// An Answer is what a store says to a round.
type Answer struct {
	// Now is the store's time.
	Now Time
	// Receipts says for each report what has become of it.
	Receipts []Receipt
	// Extensions says for each extension what has become of the lease.
	Extensions []Extension
	// Tasks are those that were claimed.
	Tasks []Claimed
	// Next is after what time this worker should claim again, although nobody wakes
	// it: when a task will be due, when a lease ends, or when it is to look whether a
	// wake-up was lost. It is never too late for that, unless another worker watches
	// the shard; negative if nothing is to come; zero if there was more that was due
	// than the claim got, and that it had room for.
	Next time.Duration
	// Paused says that claims get nothing, until Resume.
	Paused bool
	// Limited says that a handler's Concurrency keeps a task from the claim that it has room
	// for: the worker had better claim with its next reports.
	Limited bool
}

// A Receipt is what has become of a report.
type Receipt uint8

const (
	// Refused: the lease is no more, or another worker has it. Nothing was done.
	Refused Receipt = iota
	// Accepted: the attempt is over, and what the End says was done.
	Accepted
	// Overtaken: the attempt is over, but the task was cancelled while it ran, or
	// scheduled again. What that command said was done instead: the task is gone, or
	// pending again, and there is neither a retry nor a dead letter.
	Overtaken
)

// An Extension is the result of asking to extend a lease.
type Extension uint8

const (
	// Lost: it is no more. Another worker may have the task, or will.
	Lost Extension = iota
	// Held: it lasts from now on again.
	Held
	// HeldStopping: likewise, and the task was cancelled meanwhile.
	HeldStopping
)

// A Claimed is a task that a worker has got.
type Claimed struct {
	Task
	Token int64
	Due   Time // when the run was to begin
	// Attempts and Crashes are what was tried of this run before.
	Attempts int
	Crashes  int
}
