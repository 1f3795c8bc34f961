package worker

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable/store"
)

// More leases must be extended immediately than fit into a round. The next round extends the
// others. After a round that came too late, its leases are still urgent.
func TestLeasesToExtend_Urgent(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &Loop{run: &Run{Config: Config{Lease: time.Minute, Now: func() time.Time { return now }}}, wakeSignal: make(chan struct{}, 1)}
	for i := range store.MaxBatch + 1 {
		l.addLease(&Attempt{Lease: store.Lease{ID: strconv.Itoa(i)}}, now)
	}
	require.Empty(t, l.leasesToExtend(now))
	for i := range store.MaxBatch + 1 {
		l.extendLeaseNow(strconv.Itoa(i))
	}
	require.True(t, l.hasRequests(Working))
	r := &round{firstSentAt: now, extendedAttempts: l.leasesToExtend(now)}
	require.Len(t, r.extendedAttempts, store.MaxBatch)
	l.handleLateRound(r)
	require.True(t, l.nextExtension().Before(now))
	require.Equal(t, r.extendedAttempts, l.leasesToExtend(now))
	l.handleExtensions(r, &store.Answer{Extensions: slices.Repeat([]store.Extension{store.Held}, store.MaxBatch)})
	require.Len(t, l.leasesToExtend(now), 1)
}

// An urgent lease that must be extended anyway is extended once.
func TestLeasesToExtend_UrgentAndDue(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &Loop{run: &Run{Config: Config{Lease: time.Minute}}, wakeSignal: make(chan struct{}, 1)}
	l.addLease(&Attempt{Lease: store.Lease{ID: "k"}}, now.Add(-time.Minute))
	l.extendLeaseNow("k")
	require.Len(t, l.leasesToExtend(now), 1)
}
