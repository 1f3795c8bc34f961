package durable_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// busyFrom is a store whose shards from n on refuse all commands.
type busyFrom struct {
	store.Store
	n int
}

func (s busyFrom) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if shard >= s.n {
		return nil, fmt.Errorf("shard %d: %w", shard, store.ErrBusy)
	}
	return s.Store.Change(ctx, shard, st, c)
}

// Pause and Resume say ErrNotDone only if no shard was paused.
func TestPause_SomeShardsAreBusy(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		for n := range 5 {
			mem := memstore.New(memstore.WithShards(4))
			c := durable.New(busyFrom{mem, n}, quiet)
			for _, call := range []func(context.Context) error{c.Pause, c.Resume} {
				err := call(ctx)
				switch n {
				case 0:
					require.ErrorIs(t, err, durable.ErrNotDone)
					require.ErrorIs(t, err, durable.ErrBusy)
				case 4:
					require.NoError(t, err)
				default:
					require.Error(t, err)
					require.NotErrorIs(t, err, durable.ErrNotDone)
					require.NotErrorIs(t, err, durable.ErrBusy)
				}
			}
		}
	})
}
