package redisstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A reading is a time of the server's clock, with the local time when it arrived.
type reading struct {
	server store.Time
	local  time.Time
}

// maxAge is how long a reading is used.
const maxAge = 5 * time.Second

// at estimates the server's time at the local time t. The estimate is too low by the
// network delay of the reading.
func (r *reading) at(t time.Time) store.Time { return r.server.Add(t.Sub(r.local)) }

// addReading records a time of the server's clock. A network delay makes a reading too
// low, so the reading with the highest estimate stays, for at most maxAge.
func (sh *shard) addReading(now store.Time) {
	r := &reading{now, time.Now()}
	for {
		old := sh.clock.Load()
		if old != nil && r.local.Sub(old.local) < maxAge && old.at(r.local) >= now || sh.clock.CompareAndSwap(old, r) {
			return
		}
	}
}
