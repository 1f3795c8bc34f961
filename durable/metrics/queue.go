package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// timeout is how long a scrape waits for a store.
const timeout = time.Second

// A queue reads the numbers of a store, one call at a time, and keeps the latest
// answer.
type queue struct {
	stats  func(context.Context) (durable.Stats, error)
	maxAge time.Duration

	mu     sync.Mutex
	answer durable.Stats
	err    error
	at     time.Time // when the answer or the error arrived
}

// read returns the store's numbers and their age, or nil if the store did not answer in
// time.
func (q *queue) read() (*durable.Stats, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at.IsZero() || time.Since(q.at) >= q.maxAge {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		q.answer, q.err = q.stats(ctx)
		q.at = time.Now()
	}
	if q.err != nil {
		return nil, 0
	}
	answer := q.answer
	return &answer, time.Since(q.at)
}

// notes returns the error of the last call, if it failed.
func (q *queue) notes() []metric.Note {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		return nil
	}
	return []metric.Note{{When: q.at, What: "asked for its numbers", Text: q.err.Error()}}
}
