package redisstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A reading is a time of the server's clock, with the local time when it arrived.
type reading struct {
	serverTime store.Time
	localTime  time.Time
}

// maxAge is how long a reading is used.
const maxAge = 5 * time.Second

// serverTimeAt estimates the server's time at the local time t. The estimate is too low by
// the network delay of the reading.
func (r *reading) serverTimeAt(t time.Time) store.Time { return r.serverTime.Add(t.Sub(r.localTime)) }

// addReading records a time that the server has just sent. A network delay makes this
// time too low. So an older reading is kept for maxAge if it gives a later time.
func (sh *shard) addReading(now store.Time) {
	r := &reading{now, time.Now()}
	for {
		old := sh.clock.Load()
		if old != nil && r.localTime.Sub(old.localTime) < maxAge && old.serverTimeAt(r.localTime) >= now || sh.clock.CompareAndSwap(old, r) {
			return
		}
	}
}
