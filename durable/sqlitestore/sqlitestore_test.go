package sqlitestore_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

// subject returns a Store with a virtual clock in a new file. Verify checks the whole
// file each time the Store closes.
func subject(t *testing.T) storetest.Subject {
	clk := &storetest.FaultyClock{Clock: timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	path := filepath.Join(t.TempDir(), "tasks.db")
	var s *sqlitestore.Store
	closeIt := func() {
		if s != nil {
			_, err := s.Verify(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
	}
	reopen := func(t *testing.T) store.Store {
		closeIt()
		var err error
		s, err = sqlitestore.Open(path, sqlitestore.WithClock(clk), sqlitestore.WithSyncInterval(time.Minute))
		require.NoError(t, err)
		return s
	}
	first := reopen(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return storetest.Subject{
		Store: first, Advance: clk.Advance, Reopen: reopen, Steps: steps(0), Clock: clk,
		SetWall: func(d time.Duration) { clk.SetWall(clk.Wall().Add(d)) },
	}
}

func steps(n int) int {
	if testing.Short() {
		return 500
	}
	return n
}

func TestStore(t *testing.T) {
	storetest.Run(t, subject)
}

// TestStore_TwoStores runs storetest with two Stores on one file, which take turns.
// Neither may rely on data that is not in the file.
func TestStore_TwoStores(t *testing.T) {
	if testing.Short() {
		t.Skip("it repeats TestStore, which is slow with the race detector")
	}
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		path := filepath.Join(t.TempDir(), "tasks.db")
		reopen := func() *twoStores {
			b := new(twoStores)
			for i := range b.stores {
				var err error
				b.stores[i], err = sqlitestore.Open(path, sqlitestore.WithClock(clk), sqlitestore.WithSyncInterval(time.Minute))
				require.NoError(t, err)
			}
			return b
		}
		now := reopen()
		t.Cleanup(func() { now.close(t) })
		return storetest.Subject{
			Store: now, Advance: clk.Advance, Steps: steps(2000),
			SetWall: func(d time.Duration) { clk.SetWall(clk.Wall().Add(d)) },
			Reopen: func(t *testing.T) store.Store {
				now.close(t)
				now = reopen()
				return now
			},
		}
	})
}

// A twoStores is two Stores on one file. They take turns call by call.
type twoStores struct {
	stores [2]*sqlitestore.Store
	n      atomic.Int64
}

func (b *twoStores) next() *sqlitestore.Store { return b.stores[b.n.Add(1)%2] }

func (b *twoStores) close(t *testing.T) {
	_, err := b.next().Verify(context.Background())
	require.NoError(t, err)
	for _, s := range b.stores {
		require.NoError(t, s.Close())
	}
}

func (b *twoStores) Shards() int { return 1 }
func (b *twoStores) Now(ctx context.Context, shard int) (store.Time, error) {
	return b.next().Now(ctx, shard)
}

func (b *twoStores) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	return b.next().Change(ctx, shard, s, c)
}

func (b *twoStores) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	return b.next().Do(ctx, shard, s, r)
}

func (b *twoStores) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	return b.next().Wait(ctx, shards, wake)
}

func (b *twoStores) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	return b.next().Get(ctx, shard, id)
}

func (b *twoStores) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	return b.next().List(ctx, shard, f, c, limit)
}

func (b *twoStores) Stats(ctx context.Context, shard int) (store.Stats, error) {
	return b.next().Stats(ctx, shard)
}

func (b *twoStores) Workers(ctx context.Context, shard int) ([]store.Worker, error) {
	return b.next().Workers(ctx, shard)
}

func (b *twoStores) Check(ctx context.Context) (store.Health, error) { return b.next().Check(ctx) }

func (b *twoStores) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return b.next().Repair(ctx, shard)
}
