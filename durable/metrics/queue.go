package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// timeout is how long a scrape waits for a store. Prometheus waits 10 s for a scrape by
// default, which must have time for the other metrics.
const timeout = 5 * time.Second

// A queue reads the numbers of a store, one call at a time, and keeps the latest
// answer.
type queue struct {
	stats  func(context.Context) (durable.Stats, error)
	maxAge time.Duration

	calls sync.Mutex // held during a call
	last  atomic.Pointer[answer]
}

// An answer is the numbers of a store, or an error.
type answer struct {
	stats durable.Stats
	err   error
	at    time.Time // when it arrived
}

// read returns the store's numbers and their age, or nil if the store did not answer in
// time.
func (q *queue) read() (*durable.Stats, time.Duration) {
	q.calls.Lock()
	defer q.calls.Unlock()
	a := q.last.Load()
	if a == nil || time.Since(a.at) >= q.maxAge {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		a = new(answer)
		a.stats, a.err = q.stats(ctx)
		a.at = time.Now()
		q.last.Store(a)
	}
	if a.err != nil {
		return nil, 0
	}
	return &a.stats, time.Since(a.at)
}

// notes returns the error of the last call, if it failed. It does not wait for a call.
func (q *queue) notes() []metric.Note {
	a := q.last.Load()
	if a == nil || a.err == nil {
		return nil
	}
	return []metric.Note{{When: a.at, What: "asked for its numbers", Text: a.err.Error()}}
}
