package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// slow is a store whose commands take some time.
type slow struct {
	store.Store
	by time.Duration
}

func (s *slow) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	time.Sleep(s.by)
	return s.Store.Change(ctx, shard, st, c)
}

func (s *slow) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	time.Sleep(s.by)
	return s.Store.Get(ctx, shard, id)
}

func TestClientCommandStats(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		st := &slow{mem, 7 * time.Millisecond}
		refuse := &faulty{Store: st}
		c := durable.New(refuse, quiet)
		require.Empty(t, c.CommandStats())
		schedule(t, c, durable.Task{Key: "a"}, durable.After(time.Hour))
		schedule(t, c, durable.Task{Key: "a"}, durable.After(time.Hour))
		_, err := c.Cancel(ctx, "b")
		require.NoError(t, err)
		_, err = c.Get(ctx, "none")
		require.ErrorIs(t, err, durable.ErrNotFound)
		refuse.refuse = func() bool { return true }
		_, err = c.Schedule(ctx, durable.Task{Key: "x", Handler: "h"}, durable.After(0))
		require.Error(t, err)

		got := make(map[string]durable.CommandStats)
		var names []string
		for _, st := range c.CommandStats() {
			got[st.Command] = st
			names = append(names, st.Command)
		}
		require.Equal(t, "schedule cancel get", strings.Join(names, " "))
		require.Equal(t, map[durable.Outcome]int64{durable.Created: 1, durable.Replaced: 1}, got["schedule"].Outcomes)
		require.EqualValues(t, 3, got["schedule"].Took.Count())
		require.EqualValues(t, 1, got["schedule"].Errors)
		require.Equal(t, 7*time.Millisecond, got["schedule"].Took.Max())
		require.Equal(t, map[durable.Outcome]int64{durable.Absent: 1}, got["cancel"].Outcomes)
		require.Zero(t, got["get"].Errors, "ErrNotFound does not count as an error")
		require.Nil(t, got["get"].Outcomes)
		require.Same(t, refuse, c.Store())
	})
}
