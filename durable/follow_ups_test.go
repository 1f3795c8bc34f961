package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A follow-up gets the ended task's key and run. It is retried like any task, and may have
// follow-ups itself.
func TestFollowUps_Chain(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithMaxAttempts(2), durable.WithBackoff(0, 0))
		ds := make(deliveries, 10)
		w.Handle("fails", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return errors.New("it broke")
		})
		w.Handle("works", ds.handle)
		begin := time.Now()
		task := durable.Task{Key: "k", Handler: "fails", Body: []byte("body"), OnSuccess: &durable.Task{Handler: "never"},
			OnFailure: &durable.Task{Handler: "fails", Body: []byte("first"), Headers: map[string]string{"a": "b"}, MaxAttempts: 1,
				OnFailure: &durable.Task{Handler: "works", Body: []byte("second"), OnSuccess: &durable.Task{Handler: "works"}}}}
		schedule(t, c, task, durable.After(time.Minute))
		info, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, task, info.Task)
		require.Nil(t, info.Ended)
		start(t, w)
		time.Sleep(time.Minute)

		d := ds.next(t)
		require.Equal(t, []any{1, false}, []any{d.Attempt, d.LastAttempt})
		require.Nil(t, d.Ended)
		d = ds.next(t)
		require.Equal(t, []any{2, true}, []any{d.Attempt, d.LastAttempt})
		first := ds.next(t)
		require.Equal(t, []any{"k", "fails", "first", map[string]string{"a": "b"}, 1, true}, []any{first.Key, first.Handler, string(first.Body), first.Headers, first.Attempt, first.LastAttempt})
		require.NotEqual(t, d.IdempotencyKey(), first.IdempotencyKey())
		require.Greater(t, first.Token, d.Token)
		require.True(t, first.Ended.Due.Equal(begin.Add(time.Minute)), first.Ended.Due)
		first.Ended.Due = time.Time{}
		require.Equal(t, durable.Ended{Attempts: 2, Error: "it broke"}, *first.Ended)
		second := ds.next(t)
		require.Equal(t, []any{"k", "second", 1}, []any{second.Key, string(second.Body), second.Attempt})
		require.False(t, second.Ended.Done)
		third := ds.next(t)
		require.Equal(t, []any{"k", "works", 0}, []any{third.Key, third.Handler, len(third.Body)})
		require.Equal(t, durable.Ended{Done: true, Due: second.Due, Attempts: 1}, *third.Ended)
		none(t, ds, time.Hour)

		var ids []string
		for info, err := range c.List(t.Context(), durable.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, durable.Dead, info.State)
			if ids = append(ids, info.ID); info.ID != "k" {
				require.NotNil(t, info.Ended)
			}
		}
		require.Len(t, ids, 2, "the task and its first follow-up are dead letters")
	})
}

// Follow-ups of runs that end at one time have different idempotency keys.
func TestFollowUps_OfEachRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 100)
		w.Handle("works", func(context.Context, durable.Delivery) error { return nil })
		w.Handle("next", ds.handle)
		schedule(t, c, durable.Task{Key: "k", Handler: "works", Every: time.Second, Missed: durable.FireMissed, OnSuccess: &durable.Task{Handler: "next"}}, durable.After(time.Second))
		time.Sleep(10500 * time.Millisecond)
		start(t, w)
		keys := make(map[string]bool)
		for range 10 {
			d := ds.next(t)
			keys[d.IdempotencyKey()] = true
		}
		require.Len(t, keys, 10)
	})
}

func TestFollowUps_RefuseMisuse(t *testing.T) {
	c := durable.New(memstore.New(), quiet)
	for i, f := range []durable.Task{
		{}, {Handler: "h", Key: "k"}, {Handler: "h", Every: time.Second}, {Handler: "h", Cron: "@daily"}, {Handler: "h", Schedule: "s"},
		{Handler: "h", Unique: time.Second}, {Handler: "h", Retention: durable.Retention{Runs: 1}}, {Handler: "h", OnFailure: &durable.Task{Handler: "h", Key: "k"}},
		{Handler: "h", Body: []byte(strings.Repeat("x", durable.MaxTask-500))},
	} {
		_, err := c.Schedule(t.Context(), durable.Task{Key: "k", Handler: "h", OnSuccess: &f}, durable.After(0))
		require.ErrorIs(t, err, durable.ErrInvalid, "follow-up %d", i)
	}
	_, err := c.Schedule(t.Context(), durable.Task{Key: "k", Handler: "h", OnSuccess: &durable.Task{Handler: "h", Body: []byte(strings.Repeat("x", durable.MaxTask-700))}}, durable.After(0))
	require.NoError(t, err)
}
