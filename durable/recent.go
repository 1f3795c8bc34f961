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

// RecentDead returns the runs that became dead letters by this Worker's reports lately,
// 16 at most, the oldest first. [Client.List] has all that there are.
func (w *Worker) RecentDead() []RecentDead { return w.dead.get() }

// recentKept is how many RecentDead are kept.
const recentKept = 16

// recentDead keeps the latest of them.
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
