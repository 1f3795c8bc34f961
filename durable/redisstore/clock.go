package redisstore

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A clockReading is a time of the server's clock, with the local time when it arrived.
type clockReading struct {
	serverTime store.Time
	localTime  time.Time
}

// maxReadingAge is how long a reading is used.
const maxReadingAge = 5 * time.Second

// serverTimeAt estimates the server's time at the local time t. The estimate is too low by
// the network delay of the reading.
func (r *clockReading) serverTimeAt(t time.Time) store.Time {
	return r.serverTime.Add(t.Sub(r.localTime))
}

// saveReading records a time that the server has just sent. A network delay makes this
// time too low. So an older reading is kept for maxReadingAge if it gives a later time.
func (sh *shard) saveReading(now store.Time) {
	r := &clockReading{now, time.Now()}
	for {
		oldReading := sh.lastReading.Load()
		if oldReading != nil && r.localTime.Sub(oldReading.localTime) < maxReadingAge && oldReading.serverTimeAt(r.localTime) >= now || sh.lastReading.CompareAndSwap(oldReading, r) {
			return
		}
	}
}
