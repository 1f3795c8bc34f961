package durable_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// A tornStore cannot read a page that would contain one of the torn tasks.
type tornStore struct {
	*memstore.Store
	torn []string
}

func (s tornStore) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	p, err := s.Store.List(ctx, shard, f, c, limit)
	for i := range p.Entries {
		if slices.Contains(s.torn, p.Entries[i].ID) {
			return store.Page{}, fmt.Errorf("torn page: %w", store.ErrDamaged)
		}
	}
	return p, err
}

// A copy and an export go on behind pages that cannot be read, and say what they have skipped.
func TestCopy_GoesOnBehindDamagedPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := tornStore{memstore.New(memstore.WithShards(2)), []string{"k0", "k7", "k8", "k9", "k500", "k999"}}
		c := durable.New(src, quiet)
		for i := range 1000 {
			_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint("k", i), Handler: "h"}, durable.After(time.Duration(i+1)*time.Second))
			require.NoError(t, err)
		}
		dst := memstore.New()
		copied, err := durable.Copy(ctx, dst, src)
		require.ErrorIs(t, err, durable.ErrSkipped)
		require.ErrorIs(t, err, store.ErrDamaged)
		require.ErrorContains(t, err, "pending tasks from ")
		require.Equal(t, 994, copied.Added)
		for i := range 1000 {
			_, err := durable.New(dst).Get(ctx, fmt.Sprint("k", i))
			require.Equal(t, slices.Contains(src.torn, fmt.Sprint("k", i)), err != nil, i)
		}
		var file strings.Builder
		n, err := durable.Export(ctx, &file, src)
		require.ErrorIs(t, err, durable.ErrSkipped)
		require.Equal(t, 994, n)
		copied, err = durable.Import(ctx, memstore.New(), strings.NewReader(file.String()))
		require.NoError(t, err)
		require.Equal(t, 994, copied.Added)
	})
}

// An interrupted command on all tasks that match a filter counts its last step too.
func TestPurgeAll_InterruptedCountsItsLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.WithShards(1))
		c := durable.New(mem, quiet)
		for i := range 2500 {
			_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint("k", i), Handler: "h"}, durable.After(time.Hour))
			require.NoError(t, err)
		}
		interrupted, cancel := context.WithCancel(ctx)
		slow := durable.New(cutStore{mem, cancel}, quiet)
		n, err := slow.CancelAll(interrupted, durable.Filter{State: durable.Pending})
		require.ErrorIs(t, err, context.Canceled)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2500-st.Pending, n)
		require.Positive(t, n)
	})
}

// A cutStore carries out a command, but the context of the call ends before the answer.
type cutStore struct {
	*memstore.Store
	cut func()
}

func (s cutStore) Change(ctx context.Context, shard int, stamp store.Stamp, c store.Command) ([]store.Outcome, error) {
	out, err := s.Store.Change(ctx, shard, stamp, c)
	if s.cut(); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return out, err
}
