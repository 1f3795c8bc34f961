package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// scrapeTimeout is how long a scrape waits for the store. Prometheus waits 10 s by
// default, which leaves time for other metrics.
const scrapeTimeout = 5 * time.Second

// A statsReader reads the numbers of a store, one call at a time, and keeps the latest
// result.
type statsReader struct {
	readStats func(context.Context) (durable.Stats, error)
	maxAge    time.Duration

	callMu      sync.Mutex // held during a call
	lastReading atomic.Pointer[reading]
}

// A reading is the numbers of a store, or an error.
type reading struct {
	stats   durable.Stats
	err     error
	endedAt time.Time // when the call ended
}

// stats returns the store's numbers and their age, or nil if the last call failed.
func (r *statsReader) stats() (*durable.Stats, time.Duration) {
	r.callMu.Lock()
	defer r.callMu.Unlock()
	a := r.lastReading.Load()
	if a == nil || time.Since(a.endedAt) >= r.maxAge {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		a = new(reading)
		a.stats, a.err = r.readStats(ctx)
		a.endedAt = time.Now()
		r.lastReading.Store(a)
	}
	if a.err != nil {
		return nil, 0
	}
	return &a.stats, time.Since(a.endedAt)
}

// notes returns the error of the last call, if it failed. It never waits.
func (r *statsReader) notes() []metric.Note {
	a := r.lastReading.Load()
	if a == nil || a.err == nil {
		return nil
	}
	return []metric.Note{{When: a.endedAt, What: "asked for its numbers", Text: a.err.Error()}}
}
