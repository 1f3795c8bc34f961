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

// Each of many concurrent calls of stats gets numbers.
func TestStatsReader_ManyCalls(t *testing.T) {
	r := &statsReader{readStats: func(context.Context) (durable.Stats, error) { return durable.Stats{}, nil }}
	var all sync.WaitGroup
	var none atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 2000 {
				if st, _ := r.stats(); st == nil {
					none.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, none.Load())
}

// The debug page shows the last error even while another call is under way.
func TestStatsReader_NotesDuringACall(t *testing.T) {
	var during int
	r := new(statsReader)
	r.readStats = func(context.Context) (durable.Stats, error) {
		during = len(r.notes())
		return durable.Stats{}, errors.New("no answer")
	}
	r.stats()
	require.Zero(t, during)
	r.stats()
	require.Equal(t, 1, during)
}
