package worker

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable/store"
)

// More leases must be extended immediately than fit into a round. The next round
// extends the others.
func TestTakeUrgentAttempts_MoreThanARoundCanContain(t *testing.T) {
	l := &Loop{wakeSignal: make(chan struct{}, 1)}
	for i := range store.MaxBatch + 1 {
		id := strconv.Itoa(i)
		l.addLease(&Attempt{Lease: store.Lease{ID: id}}, time.Time{})
		l.extendLeaseNow(id)
	}
	require.Len(t, l.takeUrgentAttempts(), store.MaxBatch)
	require.True(t, l.hasRequests(Working))
	require.Len(t, l.takeUrgentAttempts(), 1)
	require.False(t, l.hasRequests(Working))
}
