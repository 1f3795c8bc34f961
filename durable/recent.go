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
func (w *Worker) RecentDead() []RecentDead { return w.recentDead.copyOfLatest() }

const maxRecentDead = 16

type recentDeadList struct {
	mu     sync.Mutex // guards latest
	latest []RecentDead
}

func (r *recentDeadList) addDead(d RecentDead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.latest) == maxRecentDead {
		r.latest = slices.Delete(r.latest, 0, 1)
	}
	r.latest = append(r.latest, d)
}

func (r *recentDeadList) copyOfLatest() []RecentDead {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.latest)
}
