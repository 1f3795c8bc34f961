package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestSchedule_WithoutAKey(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		seen := make(map[string]bool)
		plain := durable.New(mem, quiet)
		through := durable.New(mem, quiet, durable.WithScheduleMiddleware(func(next durable.ScheduleFunc) durable.ScheduleFunc {
			return func(ctx context.Context, items []durable.Item, opts ...durable.ScheduleOption) ([]durable.Outcome, error) {
				for _, x := range items {
					require.NotEmpty(t, x.Task.Key)
				}
				_, err := next(ctx, items, opts...)
				require.NoError(t, err)
				return next(ctx, items, opts...) // the same tasks once more
			}
		}))
		for c, want := range map[*durable.Client]durable.Outcome{plain: durable.Created, through: durable.Replaced} {
			require.Equal(t, want, schedule(t, c, durable.Task{}, durable.After(time.Hour)))
			items := []durable.Item{{Task: durable.Task{Handler: "h"}, When: durable.After(0)}, {Task: durable.Task{Handler: "h"}, When: durable.After(0)}}
			out, err := c.ScheduleBatch(ctx, items)
			require.NoError(t, err)
			require.Equal(t, []durable.Outcome{want, want}, out)
			require.Empty(t, items[0].Task.Key, "ScheduleBatch has changed the caller's items")
		}
		for info, err := range plain.List(ctx, durable.Filter{}) {
			require.NoError(t, err)
			require.Regexp(t, "^[A-Z2-7]{26}$", info.ID)
			seen[info.ID] = true
		}
		require.Len(t, seen, 6)
	})
}

func TestRescheduleBatch(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		begin := time.Now()
		schedule(t, c, durable.Task{Key: "a"}, durable.After(time.Hour))
		schedule(t, c, durable.Task{Key: "b"}, durable.After(time.Hour))
		out, err := c.RescheduleBatch(ctx, []durable.Move{
			{ID: "a", When: durable.After(time.Minute)}, {ID: "none", When: durable.After(0)}, {ID: "b", When: durable.At(begin.Add(time.Second))}})
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Moved, durable.Absent, durable.Moved}, out)
		for key, want := range map[string]time.Duration{"a": time.Minute, "b": time.Second} {
			info, err := c.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, want, info.At.Sub(begin))
		}
		for _, bad := range []durable.Move{{ID: "", When: durable.After(0)}, {ID: "b"}, {ID: "b", When: durable.After(-1)}} {
			_, err := c.RescheduleBatch(ctx, []durable.Move{{ID: "a", When: durable.After(0)}, bad})
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		info, err := c.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, time.Minute, info.At.Sub(begin), "nothing was sent")
	})
}
