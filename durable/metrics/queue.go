package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/observe/metric"
)

// A queue asks a store what it has, one question at a time, and remembers the answer.
type queue struct {
	stats           func(context.Context) (durable.Stats, error)
	maxAge, timeout time.Duration

	mu    sync.Mutex
	asked time.Time     // when it was asked last
	open  chan struct{} // closed when the question is answered; nil: it is
	// answer is the last answer, nil if that was an error, and at when it was given.
	answer *durable.Stats
	at     time.Time
	err    error // of the last answer
}

// read returns what the store has and how old that is, or nil if it has not said so in time.
func (q *queue) read() (*durable.Stats, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.open == nil && (q.at.IsZero() || now.Sub(q.at) >= q.maxAge) {
		q.askLocked(now)
	}
	open := q.open
	if open != nil {
		// A store that has not answered by then is not waited for any more, neither by
		// this scrape nor by the next.
		left := time.NewTimer(q.asked.Add(q.timeout).Sub(now))
		q.mu.Unlock()
		select {
		case <-open:
		case <-left.C:
		}
		left.Stop()
		q.mu.Lock()
	}
	// Another scrape may have asked again since.
	if q.open != nil && q.open == open || q.answer == nil {
		return nil, 0
	}
	return q.answer, time.Since(q.at)
}

// askLocked asks the store, on a goroutine: a store need not heed the context.
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

// ask asks the store. A panic of it, which nobody else can recover, is an error.
func (q *queue) ask(ctx context.Context) (st durable.Stats, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return q.stats(ctx)
}

// notes returns why the last question had no answer, if it had none.
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
