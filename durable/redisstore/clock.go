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

// saveReading records a time that the server has just sent.
func (sh *shard) saveReading(now store.Time) {
	sh.lastReading.Store(&clockReading{now, time.Now()})
}
