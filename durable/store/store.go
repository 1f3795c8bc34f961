package store

import "context"

// A Store keeps tasks. See the package comment for what it promises, and package
// storetest for the proof.
//
// An error that wraps [ErrNotDone] says that nothing was changed. After any other error
// of Change or Do it is not known whether the command was carried out: whoever needs to
// know sends the same command again, with the same [Stamp].
type Store interface {
	// Shards returns the number of shards, which never changes.
	Shards() int

	// Now returns the time by the shard's clock, or a little less.
	Now(ctx context.Context, shard int) (Time, error)

	// Change carries out a command and returns an outcome for each of its items, in
	// their order: all of them at one moment, or none. Of two items with one id the
	// later comes after the other.
	Change(ctx context.Context, shard int, s Stamp, c Command) ([]Outcome, error)

	// Do carries out a worker's round. The parts of a round are carried out in order:
	// reports, extensions, leases that have run out, the claim. Each is atomic.
	Do(ctx context.Context, shard int, s Stamp, r Round) (Answer, error)

	// Wait calls wake, from one goroutine at a time, when a task in one of the shards
	// is due earlier than the latest answers to claims there have said, until ctx
	// ends, or the store cannot go on: it returns an error in either case. While wake
	// has not returned, Wait may leave what comes to other waiters. A wake-up may come
	// without reason. A store that may lose one, together with a process or a
	// connection, has workers look by themselves now and then: see Answer.Next.
	Wait(ctx context.Context, shards []int, wake func(shard int)) error

	// Get returns what is known of a task, or [ErrNotFound].
	Get(ctx context.Context, shard int, id string) (Entry, error)

	// List returns a page of the entries that meet a filter, in the order that [Cursor] says,
	// from the cursor on. A page may be shorter than limit, which is from 1 to [MaxPage], and
	// still have a Next. Tasks that move meanwhile may be missed, or seen twice. No other
	// call waits for a list for more than some milliseconds.
	List(ctx context.Context, shard int, f Filter, c Cursor, limit int) (Page, error)

	// Stats returns the shard's numbers.
	Stats(ctx context.Context, shard int) (Stats, error)

	// Check looks whether the store can be worked with, and how safely it keeps tasks.
	// An error that wraps [ErrUnfit] does not pass by itself.
	Check(ctx context.Context) (Health, error)

	// Repair looks at every entry of the shard and puts right what should not be
	// there, in small steps beside the traffic. O(n).
	Repair(ctx context.Context, shard int) (Repair, error)
}

// Limits of what stores take.
const (
	// MaxID is the largest length of a key, and of a handler's or a schedule's name,
	// in bytes; ids of runs are a little longer.
	MaxID = 512
	// MaxRecord is the largest size of a record, in bytes.
	MaxRecord = 257 << 10
	// MaxBatch is the largest number of items of a command, and of reports and of
	// extensions in a round.
	MaxBatch = 250
	// MaxClaim is the largest number of tasks that a claim gets.
	MaxClaim = 100
	// MaxPage is the largest number of entries of a page.
	MaxPage = 1000
	// MaxFailures is how many failures of a task are kept, the latest ones.
	MaxFailures = 10
	// MaxText is how much of a failure's text is kept, in bytes.
	MaxText = 400
)
