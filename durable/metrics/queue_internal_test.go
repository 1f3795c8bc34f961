package metrics

import (
	"context"
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
