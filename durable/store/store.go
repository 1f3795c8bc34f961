package store

import "context"

// A Store keeps tasks. The package comment states its guarantees, and package storetest
// tests them.
//
// An error that wraps [ErrNotDone] means that nothing was changed. After any other
// error of Change or Do, the command may have taken effect. To find out, send it again
// with the same [Stamp].
type Store interface {
	// Shards returns the number of shards. It never changes.
	Shards() int

	// Now returns the time of the shard's clock. It may be slightly behind.
	Now(ctx context.Context, shard int) (Time, error)

	// Change carries out a command and returns the outcome of each item. Either all
	// items take effect or none. If two items have the same id, they take effect in
	// order.
	Change(ctx context.Context, shard int, s Stamp, c Command) ([]Outcome, error)

	// Do carries out a worker's round: its reports, then its extensions, then the return
	// of expired leases, then its claim. Each part is atomic. After an error the store may
	// still be reading the round, so the caller must not change its slices.
	Do(ctx context.Context, shard int, s Stamp, r Round) (Answer, error)

	// Wait calls wake with a shard when workers should claim from it earlier than
	// Answer.Next has told them. It returns an error when ctx ends or the store fails.
	//
	// Wait makes one call of wake at a time, and sometimes one without need. While wake
	// runs, other calls of Wait may get the wake-ups instead. A store that can lose a
	// wake-up limits Answer.Next, so that workers also claim regularly.
	Wait(ctx context.Context, shards []int, wake func(shard int)) error

	// Get returns the entry with an id, or [ErrNotFound].
	Get(ctx context.Context, shard int, id string) (Entry, error)

	// List returns the first entries that match f and come after c, in the order of
	// [Cursor]. limit is the maximum number of entries, from 1 to [MaxPage]. A page with
	// fewer entries, or none, may still have a Next: List reads at most about 10,000 entries
	// that do not match. A task that moves between two calls may be missed or appear twice.
	// List delays other calls by a few milliseconds at most.
	List(ctx context.Context, shard int, f Filter, c Cursor, limit int) (Page, error)

	// Stats returns the numbers of the shard.
	Stats(ctx context.Context, shard int) (Stats, error)

	// Workers returns the workers that have claimed from the shard and have not left, in any
	// order. O(n) for n workers.
	Workers(ctx context.Context, shard int) ([]Worker, error)

	// Check reports whether the store is usable, and how safely it keeps tasks. An error
	// that wraps [ErrUnfit] is permanent.
	Check(ctx context.Context) (Health, error)

	// Repair checks every entry of the shard and corrects errors, in small steps while
	// the shard is in use. O(n).
	Repair(ctx context.Context, shard int) (Repair, error)
}

// Limits of all stores.
const (
	// MaxID is the largest length of a key and of a handler's, schedule's or group's name, in
	// bytes. Ids of runs are slightly longer.
	MaxID = 512
	// MaxRecord is the largest size of a record, in bytes.
	MaxRecord = 257 << 10
	// MaxBatch is the largest number of items in a command, and of reports and extensions
	// in a round.
	MaxBatch = 250
	// MaxSet is the largest number of tasks of a set in a shard.
	MaxSet = 1000
	// MaxClaim is the largest number of tasks that a claim gets.
	MaxClaim = 100
	// MaxOfGroup is the largest number of tasks of one group that a claim gets.
	MaxOfGroup = 16
	// MaxPage is the largest number of entries of a page.
	MaxPage = 1000
	// MaxFailures is how many of a task's latest failures are kept.
	MaxFailures = 10
	// MaxText is how much of a failure's text is kept, in bytes.
	MaxText = 400
)
