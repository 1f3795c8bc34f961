package memstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// Outside its bubble it is some 26 years later: a Store refuses what would have its tasks
// come early.
func TestStore_IsUsedInItsBubbleAlone(t *testing.T) {
	ctx := context.Background()
	given, errs := make(chan *memstore.Store), make(chan error)
	go func() {
		for s := range given {
			_, err := s.Stats(ctx, 0)
			errs <- err
		}
	}()
	defer close(given)
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.WithShards(1))
		defer s.Close()
		c := durable.New(s)
		_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
		given <- s
		err = <-errs
		require.ErrorIs(t, err, store.ErrNotDone)
		require.ErrorContains(t, err, "bubble")
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Pending)
		require.Zero(t, st.Overdue)
	})
}

// Nor inside a bubble if it was made outside: its clock would go back by years, and all
// that is scheduled would be due at once.
func TestStore_MadeOutsideABubble(t *testing.T) {
	s := memstore.New(memstore.WithShards(1))
	defer s.Close()
	c := durable.New(s)
	_, err := c.Schedule(t.Context(), durable.Task{Key: "before", Handler: "h"}, durable.After(time.Hour))
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		_, err := c.Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour))
		require.ErrorIs(t, err, store.ErrNotDone)
		require.ErrorContains(t, err, "bubble")
		err = s.Wait(t.Context(), []int{0}, func(int) { t.Error("woken") })
		require.ErrorContains(t, err, "bubble")
	})
	st, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Pending)
	require.Zero(t, st.Overdue)
}
