package durable_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// If a schedule panics or ends its goroutine, the attempt fails and its place is
// released, as with a handler.
func TestWorker_NextEnds(t *testing.T) {
	for name, ends := range map[string]next{
		"panics":           func(time.Time) time.Time { panic("on purpose") },
		"ends a goroutine": func(time.Time) time.Time { runtime.Goexit(); return time.Time{} },
	} {
		for _, missed := range []durable.Missed{durable.FireMissed, durable.LatestMissed} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, mem *memstore.Store) {
					c := durable.New(mem, quiet, durable.WithSchedule("s", ends))
					ds := make(deliveries, 10)
					w := durable.NewWorker(c, durable.WithConcurrency(1), durable.WithMaxAttempts(3))
					w.Handle("h", ds.handle)
					start(t, w)
					schedule(t, c, durable.Task{Key: "k", Schedule: "s", Missed: missed}, durable.At(time.Now().Add(-time.Hour)))
					time.Sleep(time.Hour)
					var dead []durable.Info
					for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
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
					// The place is free.
					schedule(t, c, durable.Task{Key: "other"}, durable.After(0))
					require.Equal(t, "other", ds.next(t).Key)
				})
			})
		}
	}
}

// A schedule panics once. The next attempt calls it again. That attempt is the last of
// its run, and fails.
func TestWorker_NextPanicsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		calls := 0
		once := next(func(at time.Time) time.Time {
			if calls++; calls == 1 {
				panic("on purpose")
			}
			return at.Add(100 * time.Hour)
		})
		c := durable.New(mem, quiet, durable.WithSchedule("s", once))
		ds := make(deliveries, 10)
		w := durable.NewWorker(c, durable.WithMaxAttempts(2))
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
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			require.Equal(t, 2, d.Attempts)
			require.Len(t, d.Failures, 2)
		}
	})
}

// A schedule that hangs occupies its handler's place, and nothing else. The worker
// still extends leases and sends reports.
func TestWorker_NextHangs(t *testing.T) {
	for name, missed := range map[string]durable.Task{
		"latest": {Key: "k", Schedule: "s", Missed: durable.LatestMissed},
		"dead":   {Key: "k", Schedule: "s", Missed: durable.DeadMissed, MissedAfter: time.Minute},
		"fire":   {Key: "k", Schedule: "s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(memstore.WithShards(1))
				asked, release := make(chan struct{}, 10), make(chan struct{})
				hangs := next(func(time.Time) time.Time {
					asked <- struct{}{}
					<-release
					return time.Time{}
				})
				c := durable.New(mem, quiet, durable.WithSchedule("s", hangs))
				ds := make(deliveries, 10)
				w := durable.NewWorker(c, durable.WithLease(10*time.Second))
				w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
					select {
					case <-time.After(time.Minute):
						ds <- d
					case <-ctx.Done():
						t.Error(context.Cause(ctx))
					}
					return nil
				})
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				schedule(t, c, durable.Task{Key: "long"}, durable.After(0))
				synctest.Wait()
				at := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
				schedule(t, c, missed, durable.At(at))
				receive(t, asked)
				time.Sleep(2 * time.Minute)
				require.Equal(t, "long", ds.next(t).Key)
				gone(t, c, "long")
				require.Zero(t, w.Stats().Lost)
				require.Equal(t, durable.Running, becomes(t, c, "k", durable.Running).State, "its lease is extended")

				w.Close()
				require.NoError(t, <-done)
				require.Equal(t, 0, becomes(t, c, "k", durable.Pending).Attempts, "the task was handed back")
				close(release)
				synctest.Wait()
				require.Empty(t, ds, "the handler must not be called after Close")
			})
		})
	}
}

type secondly struct{}

func (secondly) Next(t time.Time) time.Time { return t.Add(time.Second) }

// More runs were missed than one claim can skip. The task still runs once, with the
// time of the latest.
func TestWorker_LatestOfVeryManyMissed(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("s", secondly{}))
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", ds.handle)
		at := time.Now().Add(-72 * time.Hour).Truncate(time.Microsecond)
		task := durable.Task{Key: "k", Schedule: "s", Missed: durable.LatestMissed}
		schedule(t, c, task, durable.At(at))
		start(t, w)
		first := ds.next(t)
		require.WithinDuration(t, time.Now(), first.Due, time.Second)
		require.Equal(t, 1, first.Attempt)
		require.Equal(t, first.Due.Add(time.Second), ds.next(t).Due)
	})
}
