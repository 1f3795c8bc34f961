package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// Do delays a round, and then calls More once for the reports that have arrived
// meanwhile. If the context ends during the delay, Do does not call More.
func TestDo_TakesAlongWhatComesWhileItWaits(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	s := New(r, WithShards(1), WithClaimDelay(100*time.Millisecond))
	defer s.Close()
	ctx := t.Context()
	number := int64(0)
	do := func(ctx context.Context, round store.Round) (store.Answer, error) {
		number++
		round.Lease, round.MaxCrashes = time.Minute, 3
		return s.Do(ctx, 0, store.Stamp{Sender: "w", Number: number}, round)
	}
	task := store.Task{ID: "k", Handler: "h"}
	_, err := s.Change(ctx, 0, store.Stamp{Sender: "c", Number: 1},
		store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.After(0), Task: task}}})
	require.NoError(t, err)
	claim := store.Claim{Asked: true, Max: 10, Handlers: []string{"h"}}
	time.Sleep(100 * time.Millisecond)
	a, err := do(ctx, store.Round{Claim: claim}) // a round after a pause is not delayed
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)

	s.latestRoundNanos.Add(int64(time.Hour))
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = do(soon, store.Round{Claim: claim, More: func(*store.Round) { t.Error("More is called after the context has ended") }})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, store.ErrNotDone)

	s.latestRoundNanos.Store(int64(time.Since(s.openedAt)))
	called := 0
	a, err = do(ctx, store.Round{Claim: claim, More: func(r *store.Round) {
		called++
		r.Reports = append(r.Reports, store.Report{Lease: store.Lease{ID: "k", Token: a.Tasks[0].Token}, End: store.Done})
	}})
	require.NoError(t, err)
	require.Equal(t, 1, called)
	require.Equal(t, []store.Receipt{store.Accepted}, a.Receipts)
}
