package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestPause_IsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		var log bytes.Buffer
		c := durable.New(mem, durable.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		logged := func() int {
			synctest.Wait()
			return strings.Count(log.String(), "the store is paused")
		}
		require.NoError(t, c.Pause(ctx))
		health, err := c.Check(ctx)
		require.NoError(t, err)
		require.Contains(t, health.Warnings[len(health.Warnings)-1], "the store is paused")
		w := durable.NewWorker(c)
		w.Handle("h", make(deliveries, 10).handle)
		start(t, w)
		for i := range 4 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(0))
			time.Sleep(time.Hour)
		}
		require.Equal(t, 1, logged())
		require.NoError(t, c.Resume(ctx))
		synctest.Wait()
		require.NoError(t, c.Pause(ctx))
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		time.Sleep(time.Hour)
		require.Equal(t, 2, logged())
		require.NoError(t, c.Resume(ctx))
	})
}

func TestPause_KeepsTasksBack(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 100)
		w.Handle("h", ds.handle)
		require.NoError(t, c.Pause(ctx))
		start(t, w)
		for i := range 50 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(0))
		}
		none(t, ds, 200*time.Millisecond)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 50, st.Overdue)
		require.NotZero(t, st.Paused)
		require.NoError(t, c.Resume(ctx))
		for range 50 {
			ds.next(t)
		}
	})
}

// beforeGet is a store that calls call before each Get.
type beforeGet struct {
	store.Store
	call func()
}

func (s *beforeGet) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	s.call()
	return s.Store.Get(ctx, shard, id)
}

// ResumeTask reads a task without a next run. Another client replaces it by one that does not
// repeat, and pauses that.
func TestResumeTask_AnotherClientReplacesTheTask(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		other := durable.New(mem, quiet)
		c := durable.New(&beforeGet{mem, func() {
			require.Equal(t, durable.Replaced, schedule(t, other, durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour)))
			_, err := other.PauseTask(ctx, "k")
			require.NoError(t, err)
		}}, quiet)
		schedule(t, other, durable.Task{Key: "k", Handler: "h", Every: time.Hour}, durable.After(time.Hour))
		_, err := other.Reschedule(ctx, "k", durable.At(store.Farthest.Std()))
		require.NoError(t, err)
		out, err := c.ResumeTask(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Changed, out)
	})
}
