package store

import "time"

// A Worker is what a shard knows about a worker that has claimed from it and has not left.
type Worker struct {
	Number int64  // its latest Round.Worker
	About  string // the Round.About of its latest claim
	// Handlers and Schedules are those of its latest claim.
	Handlers, Schedules []string
	Seen                Time          // when its latest round came
	Lease               time.Duration // the Lease of its latest claim
	// Lost says that the worker has ended without leaving: its process has ended, or it was
	// silent for longer than a living worker can be, at least as long as its leases last. A
	// store lists a lost worker until it was silent for a day.
	Lost bool
}

const (
	// MaxWorker is the largest number of a worker.
	MaxWorker = 1<<53 - 1
	// MaxAbout is the largest size of Round.About, in bytes.
	MaxAbout = 64 << 10
)

// IsSilent reports whether a worker was silent for so long that it has ended. It is for
// workers that send a round at least every interval, and when their leases need it.
func IsSilent(seen, now Time, interval time.Duration) bool {
	const shortest, margin = 30 * time.Second, 5 * time.Second
	return now.Sub(seen) > max(shortest, interval)+margin
}
