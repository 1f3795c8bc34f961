package durable

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable/store"
)

// More leases must be extended immediately than fit into a round. The next round
// extends the others.
func TestTakeUrgent_MoreThanARoundCanContain(t *testing.T) {
	l := &loop{signal: make(chan struct{}, 1)}
	for i := range store.MaxBatch + 1 {
		id := strconv.Itoa(i)
		l.leases.add(&attempt{lease: store.Lease{ID: id}}, time.Time{})
		l.extendNow(id)
	}
	require.Len(t, l.takeUrgent(), store.MaxBatch)
	require.True(t, l.hasMore(working))
	require.Len(t, l.takeUrgent(), 1)
	require.False(t, l.hasMore(working))
}
