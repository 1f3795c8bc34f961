package durable_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A schedule that panics, or ends its goroutine, in a handler's goroutine or in a loop's,
// fails the attempt like a handler that does, and keeps no place.
func TestWorker_NextEnds(t *testing.T) {
	for name, ends := range map[string]next{
		"panics":           func(time.Time) time.Time { panic("on purpose") },
		"ends a goroutine": func(time.Time) time.Time { runtime.Goexit(); return time.Time{} },
	} {
		for _, missed := range []durable.Missed{durable.FireMissed, durable.LatestMissed} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, mem *memstore.Store) {
					c := durable.New(mem, quiet)
					ds := make(deliveries, 10)
					w := durable.NewWorker(c, durable.WithConcurrency(1), durable.WithMaxAttempts(3),
						durable.WithSchedule("s", ends))
					w.Handle("h", ds.handle)
					start(t, w)
					schedule(t, c, durable.Task{Key: "k", Schedule: "s", Missed: missed}, durable.At(time.Now().Add(-time.Hour)))
					time.Sleep(time.Hour)
					var dead []durable.DeadLetter
					for d, err := range c.DeadLetters(ctx) {
						require.NoError(t, err)
						dead = append(dead, d)
					}
					require.Len(t, dead, 1)
					require.Equal(t, 3, dead[0].Attempts)
					for i, f := range dead[0].Failures {
						require.Equal(t, i+1, f.Attempt)
						require.Contains(t, f.Error, "the schedule \"s\"")
					}
					require.Empty(t, ds)
					// Its place is free.
					schedule(t, c, durable.Task{Key: "other"}, durable.After(0))
					require.Equal(t, "other", ds.next(t).Key)
				})
			})
		}
	}
}

// One that panics once does better the next time, and then the run's last attempt fails.
func TestWorker_NextPanicsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		calls := 0
		once := next(func(at time.Time) time.Time {
			if calls++; calls == 1 {
				panic("on purpose")
			}
			return at.Add(100 * time.Hour)
		})
		ds := make(deliveries, 10)
		w := durable.NewWorker(c, durable.WithMaxAttempts(2), durable.WithSchedule("s", once))
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return errors.New("fails")
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Schedule: "s"}, durable.After(0))
		require.Equal(t, 2, ds.next(t).Attempt)
		time.Sleep(time.Hour)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State)
		for d, err := range c.DeadLetters(ctx) {
			require.NoError(t, err)
			require.Equal(t, 2, d.Attempts)
			require.Len(t, d.Failures, 2)
		}
	})
}
