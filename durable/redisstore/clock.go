package redisstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A reading is what a server's clock showed, and a moment after it.
type reading struct {
	now   store.Time
	after time.Time
}

// fresh is how old a reading may be.
const fresh = 5 * time.Second

// at returns what the server's clock will show at a time, or a little less.
func (r *reading) at(t time.Time) store.Time { return r.now.Add(t.Sub(r.after)) }

// read notes what the clock of a shard's server has just shown. Each reading is less than
// the clock by the time that the answer took, so that the largest is the best.
func (sh *shard) read(now store.Time) {
	r := &reading{now, time.Now()}
	for {
		old := sh.clock.Load()
		if old != nil && r.after.Sub(old.after) < fresh && old.at(r.after) >= now || sh.clock.CompareAndSwap(old, r) {
			return
		}
	}
}
