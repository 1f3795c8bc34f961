package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// A lateStore says of each round that it was late, also if it has no deadline.
type lateStore struct {
	store.Store
	isLate atomic.Bool
	rounds atomic.Int64
}

func (s *lateStore) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if !s.isLate.Load() {
		return s.Store.Do(ctx, shard, st, r)
	}
	if s.rounds.Add(1) > 10_000 {
		return store.Answer{}, errors.New("too many rounds") // ends a Worker that spins
	}
	return store.Answer{}, store.ErrLate
}

// A round without a deadline that is late is tried again after pauses.
func TestWorker_LateWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &lateStore{Store: memstore.New()}
		c := durable.New(st)
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error { time.Sleep(time.Second); return nil })
		ended := make(chan error, 1)
		go func() { ended <- w.Run(t.Context()) }()
		_, err := c.Schedule(t.Context(), durable.Task{Handler: "h"}, durable.After(0))
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		st.isLate.Store(true)
		time.Sleep(10 * time.Second)
		require.Less(t, st.rounds.Load(), int64(50))
		st.isLate.Store(false)
		require.NoError(t, w.Shutdown(t.Context()))
		require.NoError(t, <-ended)
		stats, err := c.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Done)
	})
}
