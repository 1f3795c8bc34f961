package redisstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A reading is a time of a server's clock, and a local time shortly after it.
type reading struct {
	now   store.Time
	after time.Time
}

// maxAge is the age from which a reading is no longer used.
const maxAge = 5 * time.Second

// at returns the time of the server's clock at the local time t, or slightly less.
func (r *reading) at(t time.Time) store.Time { return r.now.Add(t.Sub(r.after)) }

// read records a time of the server's clock. A reading lags behind the clock by the
// time that the answer took, so the largest one is the best.
func (sh *shard) read(now store.Time) {
	r := &reading{now, time.Now()}
	for {
		old := sh.clock.Load()
		if old != nil && r.after.Sub(old.after) < maxAge && old.at(r.after) >= now || sh.clock.CompareAndSwap(old, r) {
			return
		}
	}
}
