package metrics

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
)

// Each of many concurrent scrapes gets an answer.
func TestQueue_ManyThatAskEachTime(t *testing.T) {
	q := &queue{stats: func(context.Context) (durable.Stats, error) { return durable.Stats{}, nil }}
	var all sync.WaitGroup
	var none atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 2000 {
				if st, _ := q.read(); st == nil {
					none.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, none.Load())
}

// The debug page shows why the store has not answered while another call is under way.
func TestQueueNotes_DuringACall(t *testing.T) {
	var during int
	q := new(queue)
	q.stats = func(context.Context) (durable.Stats, error) {
		during = len(q.notes())
		return durable.Stats{}, errors.New("no answer")
	}
	q.read()
	require.Zero(t, during)
	q.read()
	require.Equal(t, 1, during)
}
