package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestWithMiddleware_OrderAndPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(), quiet)
		var calls []string
		around := func(name string) func(durable.Handler) durable.Handler {
			return func(next durable.Handler) durable.Handler {
				calls = append(calls, "made "+name)
				return func(ctx context.Context, d durable.Delivery) error {
					calls = append(calls, name)
					defer func() { calls = append(calls, "end of "+name) }()
					return next(ctx, d)
				}
			}
		}
		w := durable.NewWorker(c, durable.WithMiddleware(around("1"), around("2")), durable.WithMaxAttempts(1))
		w.Handle("h", func(context.Context, durable.Delivery) error {
			panic("on purpose")
		}, durable.WithMiddleware(around("3")))
		w.Handle("other", func(context.Context, durable.Delivery) error { return nil })
		require.Equal(t, []string{"made 3", "made 2", "made 1", "made 2", "made 1"}, calls)
		calls = nil
		schedule(t, c, durable.Task{Key: "a"}, durable.After(0))
		start(t, w)
		synctest.Wait()
		require.Equal(t, []string{"1", "2", "3", "end of 3", "end of 2", "end of 1"}, calls)
		require.EqualValues(t, 1, w.Stats().Died)
		require.PanicsWithValue(t, "durable: WithMiddleware: nil function", func() { durable.WithMiddleware(nil) })
		require.PanicsWithValue(t, "durable: Handle: a middleware returned nil", func() {
			durable.NewWorker(c).Handle("h", func(context.Context, durable.Delivery) error { return nil },
				durable.WithMiddleware(func(durable.Handler) durable.Handler { return nil }))
		})
	})
}

func TestWithScheduleMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mark := func(value string) func(durable.ScheduleFunc) durable.ScheduleFunc {
			return func(next durable.ScheduleFunc) durable.ScheduleFunc {
				return func(ctx context.Context, items []durable.Item, opts ...durable.ScheduleOption) ([]durable.Outcome, error) {
					for i := range items {
						items[i].Task.Headers = map[string]string{"marks": items[i].Task.Headers["marks"] + value}
					}
					return next(ctx, items, opts...)
				}
			}
		}
		c := durable.New(memstore.New(), quiet, durable.WithScheduleMiddleware(mark("a"), mark("b")))
		require.Equal(t, durable.Created, schedule(t, c, durable.Task{Key: "one"}, durable.After(time.Hour)))
		items := []durable.Item{
			{Task: durable.Task{Key: "one", Handler: "h"}, When: durable.After(time.Hour)},
			{Task: durable.Task{Key: "two", Handler: "h"}, When: durable.After(time.Hour)},
		}
		out, err := c.ScheduleBatch(ctx, items, durable.OnlyNew())
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Kept, durable.Created}, out)
		require.Nil(t, items[0].Task.Headers, "the caller's items stay as they are")
		for _, key := range []string{"one", "two"} {
			info, err := c.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"marks": "ab"}, info.Task.Headers)
		}
		_, err = c.Schedule(ctx, durable.Task{}, durable.After(0))
		require.ErrorIs(t, err, durable.ErrInvalid)

		refusal := errors.New("not today")
		closed := durable.New(memstore.New(), durable.WithScheduleMiddleware(func(durable.ScheduleFunc) durable.ScheduleFunc {
			return func(context.Context, []durable.Item, ...durable.ScheduleOption) ([]durable.Outcome, error) {
				return nil, refusal
			}
		}))
		o, err := closed.Schedule(ctx, durable.Task{Key: "a", Handler: "h"}, durable.After(0))
		require.ErrorIs(t, err, refusal)
		require.Equal(t, durable.Unknown, o)
		require.PanicsWithValue(t, "durable: WithScheduleMiddleware: nil function", func() { durable.WithScheduleMiddleware(nil) })
	})
}
