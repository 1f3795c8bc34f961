package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// A queue reads the numbers of a store, one call at a time, and keeps the latest
// answer.
type queue struct {
	stats           func(context.Context) (durable.Stats, error)
	maxAge, timeout time.Duration

	mu    sync.Mutex
	asked time.Time     // when it was asked last
	open  chan struct{} // closed when the question is answered; nil: it is
	// answer is the latest answer, or nil if that was an error. at is when it arrived.
	answer *durable.Stats
	at     time.Time
	err    error // of the last answer
}

// read returns the store's numbers and their age, or nil if the store did not answer in
// time.
func (q *queue) read() (*durable.Stats, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.open == nil && (q.at.IsZero() || now.Sub(q.at) >= q.maxAge) {
		q.askLocked(now)
	}
	open := q.open
	if open != nil {
		// If the store has not answered by then, neither this scrape nor the next ones
		// wait for it.
		left := time.NewTimer(q.asked.Add(q.timeout).Sub(now))
		q.mu.Unlock()
		select {
		case <-open:
		case <-left.C:
		}
		left.Stop()
		q.mu.Lock()
	}
	// Another scrape may have started a new call meanwhile.
	if q.open != nil && q.open == open || q.answer == nil {
		return nil, 0
	}
	return q.answer, time.Since(q.at)
}

// askLocked calls the store on a goroutine, because a store may ignore the context.
func (q *queue) askLocked(now time.Time) {
	open := make(chan struct{})
	q.open, q.asked = open, now
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
		defer cancel()
		st, err := q.ask(ctx)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.answer, q.at, q.err, q.open = &st, time.Now(), err, nil
		if err != nil {
			q.answer = nil
		}
		close(open)
	}()
}

// ask calls the store. It turns a panic, which no caller could recover, into an error.
func (q *queue) ask(ctx context.Context) (st durable.Stats, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return q.stats(ctx)
}

// notes returns the error of the last call, if it failed.
func (q *queue) notes() []metric.Note {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.open != nil && time.Since(q.asked) >= q.timeout:
		return []metric.Note{{When: q.asked, What: "asked for its numbers", Text: "it has not answered yet"}}
	case q.err != nil:
		return []metric.Note{{When: q.at, What: "asked for its numbers", Text: q.err.Error()}}
	}
	return nil
}
