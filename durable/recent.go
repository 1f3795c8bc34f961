package durable

import (
	"slices"
	"sync"
	"time"
)

// A RecentDead is a run that became a dead letter.
type RecentDead struct {
	When    time.Time // by the Worker's clock, when the store had taken the report
	Key     string
	Handler string
	Attempt int
	Error   string // its beginning
}

// RecentDead returns the latest runs that this Worker made dead letters, at most 16,
// the oldest first. [Client.List] returns all dead letters.
func (w *Worker) RecentDead() []RecentDead { return w.dead.get() }

// maxRecentDead is how many dead letters RecentDead returns at most.
const recentKept = 16

// A deadList has the latest RecentDead.
type recentDead struct {
	mu  sync.Mutex
	all []RecentDead
}

func (r *recentDead) add(d RecentDead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == recentKept {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, d)
}

func (r *recentDead) get() []RecentDead {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}
