package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
	"go.uber.org/goleak"
)

var quiet = durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// soon is how long a test waits, on a busy machine, for an event that should come
// immediately.
const soon = 30 * time.Second

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test with a memstore in a synctest bubble, where waiting takes no real
// time.
func bubble(t *testing.T, f func(t *testing.T, st *memstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, memstore.New(memstore.WithShards(4))) })
}

// start runs a worker until the test ends.
func start(t *testing.T, w *durable.Worker) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		_ = w.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// deliveries collects the deliveries of a handler.
type deliveries chan durable.Delivery

func (ds deliveries) handle(_ context.Context, d durable.Delivery) error {
	ds <- d
	return nil
}

func (ds deliveries) next(t *testing.T) durable.Delivery {
	t.Helper()
	return receive(t, ds)
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(soon):
		t.Fatal("nothing was received")
	}
	panic("not reached")
}

func none[T any](t *testing.T, c <-chan T, d time.Duration) {
	t.Helper()
	select {
	case x := <-c:
		t.Fatalf("received %v", x)
	case <-time.After(d):
	}
}

func schedule(t *testing.T, c *durable.Client, x durable.Task, w durable.When) durable.Outcome {
	t.Helper()
	if x.Handler == "" {
		x.Handler = "h"
	}
	out, err := c.Schedule(ctx, x, w)
	require.NoError(t, err)
	return out
}

// gone waits until a task no longer exists.
func gone(t *testing.T, c *durable.Client, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := c.Get(ctx, key)
		return errors.Is(err, durable.ErrNotFound)
	}, soon, 5*time.Millisecond)
}

// becomes waits until a task has a state.
func becomes(t *testing.T, c *durable.Client, key string, s durable.State) durable.Info {
	t.Helper()
	var info durable.Info
	require.Eventually(t, func() bool {
		var err error
		info, err = c.Get(ctx, key)
		return err == nil && info.State == s
	}, soon, 5*time.Millisecond)
	return info
}

func TestWorker_RunsEveryTaskOnceAndNoneEarly(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		const n = 500
		var mu sync.Mutex
		runs := make(map[string]int)
		all := make(chan struct{})
		handle := func(_ context.Context, d durable.Delivery) error {
			now := time.Now() // the store has the same clock
			mu.Lock()
			defer mu.Unlock()
			if now.Before(d.Due) {
				t.Errorf("%s is early: due %v, now %v", d.Key, d.Due, now)
			}
			if string(d.Body) != "body of "+d.Key || d.Attempt != 1 || d.Token == 0 {
				t.Errorf("unexpected %+v", d)
			}
			if runs[d.Key]++; len(runs) == n {
				close(all)
			}
			return nil
		}
		for range 3 {
			w := durable.NewWorker(c, durable.WithConcurrency(20))
			w.Handle("h", handle)
			start(t, w)
		}
		var items []durable.Item
		for i := range n {
			key := fmt.Sprint("k", i)
			items = append(items, durable.Item{
				Task: durable.Task{Key: key, Handler: "h", Body: []byte("body of " + key)},
				When: durable.After(rand.N(2 * time.Second)),
			})
		}
		_, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		receive(t, all)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Done == n && st.Pending+st.Running+st.Dead == 0
		}, soon, 10*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for key, n := range runs {
			require.Equal(t, 1, n, key)
		}
	})
}

func TestWorker_ComesInTimeForATaskBeforeTheOneItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		// Workers do not poll. If a wake-up were lost, its task would never run.
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		for range 2 {
			w := durable.NewWorker(c)
			w.Handle("h", ds.handle)
			start(t, w)
		}
		schedule(t, c, durable.Task{Key: "late"}, durable.After(time.Hour))
		for i := range 20 {
			key := fmt.Sprint("k", i)
			schedule(t, c, durable.Task{Key: key}, durable.After(time.Duration(20-i)*10*time.Millisecond))
			if i%3 == 0 {
				require.Equal(t, key, ds.next(t).Key)
			} else {
				_, err := c.Reschedule(ctx, key, durable.After(0))
				require.NoError(t, err)
				require.Equal(t, key, ds.next(t).Key)
			}
		}
		_, err := c.Reschedule(ctx, "late", durable.After(0))
		require.NoError(t, err)
		require.Equal(t, "late", ds.next(t).Key)
	})
}

// A worker claims no more tasks than it has places, over all shards. Other tasks stay
// in the store for other workers.
func TestWorker_TakesNoMoreThanItHasPlacesFor(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			const places, tasks = 3, 40
			c := durable.New(memstore.New(memstore.WithShards(shards)), quiet)
			w := durable.NewWorker(c, durable.WithConcurrency(places))
			release := make(chan struct{})
			defer close(release)
			w.Handle("h", func(context.Context, durable.Delivery) error {
				<-release
				return nil
			})
			for i := range tasks {
				schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(0))
			}
			start(t, w)
			most := int64(0)
			for range tasks {
				time.Sleep(time.Second)
				synctest.Wait()
				st, err := c.Stats(ctx)
				require.NoError(t, err)
				most = max(most, st.Running)
				release <- struct{}{}
			}
			require.EqualValues(t, places, most)
		})
	}
}

func TestWorker_RetriesAndTellsTheAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			switch d.Attempt {
			case 1:
				return errors.New("first error")
			case 2:
				panic("second error")
			}
			return nil
		}, durable.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		first, second, third := ds.next(t), ds.next(t), ds.next(t)
		require.Equal(t, []int{1, 2, 3}, []int{first.Attempt, second.Attempt, third.Attempt})
		require.Less(t, first.Token, second.Token)
		require.Less(t, second.Token, third.Token)
		require.True(t, first.Due.Equal(second.Due) && second.Due.Equal(third.Due))
		require.Equal(t, first.IdempotencyKey(), third.IdempotencyKey())
		gone(t, c, "k")

		schedule(t, c, durable.Task{Key: "k", MaxAttempts: 2}, durable.After(0))
		require.NotEqual(t, first.IdempotencyKey(), func() string { d := ds.next(t); return d.IdempotencyKey() }())
		info := becomes(t, c, "k", durable.Dead)
		require.Equal(t, 2, info.Attempts)
		require.Len(t, info.Failures, 2)
		require.Equal(t, "first error", info.Failures[0].Error)
		require.Equal(t, 1, info.Failures[0].Attempt)
		require.Contains(t, info.Failures[1].Error, "second error")
	})
}

func TestWorker_NoRetryAndRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		wait := 300 * time.Millisecond
		times := make(chan time.Time, 10)
		w.Handle("never", func(context.Context, durable.Delivery) error {
			return fmt.Errorf("wrapped: %w", durable.NoRetry(errors.New("gone for good")))
		})
		w.Handle("after", func(_ context.Context, d durable.Delivery) error {
			times <- time.Now()
			if d.Attempt == 1 {
				return fmt.Errorf("wrapped: %w", durable.RetryAfter(errors.New("busy"), wait))
			}
			return nil
		}, durable.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, durable.Task{Key: "never", Handler: "never"}, durable.After(0))
		schedule(t, c, durable.Task{Key: "after", Handler: "after"}, durable.After(0))
		info := becomes(t, c, "never", durable.Dead)
		require.Equal(t, 1, info.Attempts)
		require.Equal(t, "wrapped: gone for good", info.Failures[0].Error)
		first, second := receive(t, times), receive(t, times)
		require.GreaterOrEqual(t, second.Sub(first), wait)
	})
}

// A delay beyond store.MaxDelay is reduced to it. It must not count as no delay, or
// make the store refuse the round.
func TestWorker_DelaysBeyondAllBounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		var calls atomic.Int64
		put := map[string]func(error, time.Duration) error{"retry": durable.RetryAfter, "back": durable.HandBack}
		for name, off := range put {
			w.Handle(name, func(context.Context, durable.Delivery) error {
				calls.Add(1)
				return off(errors.New("much later"), math.MaxInt64)
			})
		}
		w.Handle("good", func(context.Context, durable.Delivery) error { return nil })
		for name := range put {
			schedule(t, c, durable.Task{Key: name, Handler: name}, durable.After(0))
		}
		for i := range 50 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i), Handler: "good"}, durable.After(0))
		}
		start(t, w)
		for i := range 50 {
			gone(t, c, fmt.Sprint(i))
		}
		for name := range put {
			info := becomes(t, c, name, durable.Pending)
			require.Greater(t, time.Until(info.At), 100*365*24*time.Hour)
		}
		require.EqualValues(t, len(put), calls.Load())
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 50, st.Done)
		require.Zero(t, st.Refused+st.Crashed)
	})
}

func TestSchedule_RefusesTimesBeyondAllBounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for _, task := range []durable.Task{
			{Key: "k", Handler: "h", Every: math.MaxInt64},
			{Key: "k", Handler: "h", Timeout: math.MaxInt64},
			{Key: "k", Handler: "h", Missed: durable.DeadMissed, MissedAfter: math.MaxInt64},
		} {
			_, err := c.Schedule(ctx, task, durable.After(0))
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
	})
}

func TestDeadLetters_ListRequeuePurge(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		fail := true
		var mu sync.Mutex
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return errors.New("no")
			}
			ds <- d
			return nil
		}, durable.WithMaxAttempts(1))
		start(t, w)
		const n = 300
		var items []durable.Item
		for i := range n {
			items = append(items, durable.Item{
				Task: durable.Task{Key: fmt.Sprint(i), Handler: "h", Body: []byte("b")}, When: durable.After(0),
			})
		}
		_, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == n
		}, soon, 10*time.Millisecond)
		mu.Lock()
		fail = false
		mu.Unlock()

		seen := make(map[string]bool)
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			require.False(t, seen[d.ID], "twice: %s", d.ID)
			seen[d.ID] = true
			require.Equal(t, d.ID, d.Task.Key)
			require.Equal(t, "b", string(d.Task.Body))
			require.Equal(t, 1, d.Attempts)
			require.Equal(t, "no", d.Failures[0].Error)
			require.WithinDuration(t, time.Now(), d.At, time.Minute)
			// Purging during the iteration does not skip any task.
			if len(seen)%2 == 0 {
				out, err := c.Purge(ctx, d.ID)
				require.NoError(t, err)
				require.Equal(t, durable.Removed, out)
			}
		}
		require.Len(t, seen, n)

		requeued := 0
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			out, err := c.Requeue(ctx, d.ID, durable.After(0))
			require.NoError(t, err)
			require.Equal(t, durable.Moved, out)
			require.Equal(t, 1, ds.next(t).Attempt)
			requeued++
		}
		require.Equal(t, n/2, requeued)
		out, err := c.Requeue(ctx, "absent", durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
		out, err = c.Purge(ctx, "absent")
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
	})
}

func TestDeadLetters_ManyAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		// RequeueAll must end, although these tasks fail again immediately.
		for i := range 3 {
			w.Handle(fmt.Sprint("h", i), func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) })
		}
		start(t, w)
		const n = 300
		for i := range n {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i), Handler: fmt.Sprint("h", i%3)}, durable.After(0))
		}
		dead := func(n int64) {
			t.Helper()
			require.Eventually(t, func() bool {
				st, err := c.Stats(ctx)
				return err == nil && st.Dead == n && st.Pending+st.Running == 0
			}, soon, 5*time.Millisecond)
		}
		dead(n)
		of := func(i int) durable.Filter { return durable.Filter{Handler: fmt.Sprint("h", i)} }
		time.Sleep(time.Millisecond) // a task that died in this microsecond is not requeued
		moved, err := c.RequeueAll(ctx, of(0), durable.After(time.Hour))
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n/3, st.Pending)
		removed, err := c.PurgeAll(ctx, of(1))
		require.NoError(t, err)
		require.Equal(t, n/3, removed)
		moved, err = c.RequeueAll(ctx, durable.Filter{State: durable.Dead}, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		require.Eventually(t, func() bool { return w.Stats().Died == n+n/3 }, soon, 5*time.Millisecond)
		removed, err = c.PurgeAll(ctx, durable.Filter{State: durable.Dead})
		require.NoError(t, err)
		require.LessOrEqual(t, removed, n/3)
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		_, err = c.PurgeAll(stopped, durable.Filter{State: durable.Dead})
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.RequeueAll(ctx, durable.Filter{}, durable.When{})
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}

func TestWorker_ProlongsItsLeases(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		const lease = 300 * time.Millisecond
		ds := make(deliveries, 10)
		for range 2 {
			w := durable.NewWorker(c, durable.WithLease(lease))
			w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
				ds <- d
				select {
				case <-ctx.Done():
					t.Error(context.Cause(ctx))
				case <-time.After(5 * lease):
				}
				return nil
			})
			start(t, w)
		}
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		gone(t, c, "k")
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Crashed)
		require.Empty(t, ds)
	})
}

func TestCancel_OfARunningTask(t *testing.T) {
	const lease = 300 * time.Millisecond
	t.Run("same client", func(t *testing.T) {
		testCancelOfARunningTask(t, lease, 0, func(_ store.Store, c *durable.Client) *durable.Client { return c })
	})
	t.Run("another client", func(t *testing.T) {
		testCancelOfARunningTask(t, lease, lease/3, func(st store.Store, _ *durable.Client) *durable.Client { return durable.New(st, quiet) })
	})
}

func testCancelOfARunningTask(t *testing.T, lease, within time.Duration, other func(store.Store, *durable.Client) *durable.Client) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithLease(lease))
		ds, causes := make(deliveries, 10), make(chan error)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, durable.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Millisecond}, durable.After(0))
		ds.next(t)
		out, err := other(mem, c).Cancel(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Stopping, out)
		cancelled := time.Now()
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Stopping)
		require.ErrorIs(t, receive(t, causes), durable.ErrCancelled)
		require.LessOrEqual(t, time.Since(cancelled), within)
		gone(t, c, "k")
		require.Empty(t, ds, "no other attempt, and no other run")
	})
}

func TestSchedule_OfARunningTaskFollows(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds, end := make(deliveries, 10), make(chan error)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Body: []byte("1")}, durable.After(0))
		require.Equal(t, "1", string(ds.next(t).Body))
		out := schedule(t, c, durable.Task{Key: "k", Body: []byte("2")}, durable.After(0))
		require.Equal(t, durable.Following, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Following)
		require.Equal(t, durable.Running, info.State)
		none(t, ds, 50*time.Millisecond)
		end <- errors.New("fails, and is not tried again")
		d := ds.next(t)
		require.Equal(t, "2", string(d.Body))
		require.Equal(t, 1, d.Attempt)
		end <- nil
		gone(t, c, "k")
	})
}

// Two runs that are due at the same time have different idempotency keys. All attempts
// at a run have the same key.
func TestIdempotencyKey_OfRunsDueAtOneTime(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithBackoff(time.Millisecond, time.Millisecond))
		ds, end := make(deliveries, 10), make(chan error)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		past := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
		seen := make(map[string]bool)
		run := func(attempts int) {
			t.Helper()
			d := ds.next(t)
			require.True(t, past.Equal(d.Due))
			require.Equal(t, 1, d.Attempt)
			require.False(t, seen[d.IdempotencyKey()], "another run has the same key")
			seen[d.IdempotencyKey()] = true
			for range attempts - 1 {
				end <- errors.New("fails")
				require.Equal(t, d.IdempotencyKey(), func() string { d := ds.next(t); return d.IdempotencyKey() }())
			}
		}
		schedule(t, c, durable.Task{Key: "k", Every: time.Hour, Missed: durable.FireMissed}, durable.At(past))
		run(2)
		for range 2 {
			out, err := c.Reschedule(ctx, "k", durable.At(past))
			require.NoError(t, err)
			require.Equal(t, durable.Following, out)
			end <- nil
			run(1)
		}
		// The time for which the task was scheduled again has passed, so it runs
		// immediately.
		end <- nil
		d := ds.next(t)
		require.True(t, past.Add(time.Hour).Equal(d.Due))
		end <- nil
		synctest.Wait()
		out, err := c.Reschedule(ctx, "k", durable.At(past))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		run(1)
		schedule(t, c, durable.Task{Key: "k"}, durable.At(past))
		end <- nil
		run(1)
		for range 2 {
			end <- durable.NoRetry(errors.New("fails"))
			synctest.Wait()
			out, err := c.Requeue(ctx, "k", durable.At(past))
			require.NoError(t, err)
			require.Equal(t, durable.Moved, out)
			run(2)
		}
		end <- nil
		gone(t, c, "k")
	})
}

func TestWorker_Repeats(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("thrice", &times{n: 2, step: 20 * time.Millisecond}))
		ds := make(deliveries, 100)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		const every = 20 * time.Millisecond
		schedule(t, c, durable.Task{Key: "every", Every: every}, durable.After(0))
		first := ds.next(t)
		for i := range 5 {
			d := ds.next(t)
			require.Equal(t, first.Due.Add(time.Duration(i+1)*every), d.Due)
			require.Equal(t, 1, d.Attempt)
			require.NotEqual(t, first.IdempotencyKey(), d.IdempotencyKey())
		}
		_, err := c.Cancel(ctx, "every")
		require.NoError(t, err)
		gone(t, c, "every")
		for len(ds) > 0 {
			<-ds
		}
		schedule(t, c, durable.Task{Key: "schedule", Schedule: "thrice"}, durable.After(0))
		for range 3 {
			require.Equal(t, "schedule", ds.next(t).Key)
		}
		gone(t, c, "schedule")
	})
}

// times is a schedule of n times. Each is one step after the time given.
type times struct {
	mu   sync.Mutex // several workers may share the value
	n    int
	step time.Duration
}

func (s *times) Next(t time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return time.Time{}
	}
	s.n--
	return t.Add(s.step)
}

func TestWorker_MissedRuns(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 1000)
		ago := time.Now().Add(-10*time.Hour - 30*time.Minute).Truncate(time.Microsecond)
		for _, x := range []durable.Task{
			{Key: "fire", Every: time.Hour, Missed: durable.FireMissed},
			{Key: "latest", Every: time.Hour},
			{Key: "dead", Every: time.Hour, Missed: durable.DeadMissed, MissedAfter: 100 * time.Minute},
			{Key: "once", Missed: durable.DeadMissed, MissedAfter: time.Hour},
			{Key: "once, in time", Missed: durable.DeadMissed, MissedAfter: 24 * time.Hour},
			{Key: "once, latest", Missed: durable.LatestMissed},
		} {
			schedule(t, c, x, durable.At(ago))
		}
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		got := make(map[string][]int) // hours after ago
		for range 11 + 1 + 2 + 0 + 1 + 1 {
			d := ds.next(t)
			got[d.Key] = append(got[d.Key], int(d.Due.Sub(ago).Hours()))
		}
		require.Equal(t, map[string][]int{
			"fire":          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
			"latest":        {10},
			"dead":          {9, 10},
			"once, in time": {0},
			"once, latest":  {0},
		}, got)
		for _, key := range []string{"fire", "latest", "dead"} {
			info := becomes(t, c, key, durable.Pending)
			require.Equal(t, ago.Add(11*time.Hour), info.At, key)
		}
		died := make(map[string]int)
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			died[d.Task.Key] += d.Runs
			require.Contains(t, d.Failures[0].Error, "missed")
			require.Zero(t, d.Attempts, "the handler was not called")
			require.Zero(t, d.Failures[0].Attempt)
			require.Zero(t, d.Task.Every, "a dead run does not repeat when it is requeued")
		}
		require.Equal(t, map[string]int{"dead": 9, "once": 1}, died)
		require.Empty(t, ds)
	})
}

// All attempts fail for two hours. The task must run soon after that.
func TestWorker_ARepeatingTaskIsBackSoonAfterAnOutage(t *testing.T) {
	for name, task := range map[string]durable.Task{
		"every":    {Key: "k", Every: time.Minute},
		"schedule": {Key: "k", Schedule: "minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet, durable.WithSchedule("minutes", &times{n: 1 << 30, step: time.Minute}))
				w := durable.NewWorker(c)
				end := time.Now().Add(2 * time.Hour)
				var after []time.Duration // the end
				w.Handle("h", func(context.Context, durable.Delivery) error {
					if time.Now().Before(end) {
						return errors.New("down")
					}
					after = append(after, time.Since(end))
					return nil
				})
				start(t, w)
				schedule(t, c, task, durable.After(0))
				time.Sleep(2*time.Hour + 10*time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, after[0], time.Minute)
				require.InDelta(t, 11, len(after), 1, "one run a minute, and one for all that were missed")
			})
		})
	}
}

func TestWorker_CountsRunsThatAreSlowerThanTheirPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		runs := 0
		w.Handle("h", func(context.Context, durable.Delivery) error {
			if runs++; runs == 2 {
				time.Sleep(150 * time.Second)
			}
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Minute}, durable.After(0))
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 10, runs, "a run each minute from 0 to 10, without the one at 2")
		require.EqualValues(t, 1, w.HandlerStats()[0].Overran)
	})
}

func TestWorker_ARepeatingTaskSurvivesADeadRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 100)
		bad := true
		var mu sync.Mutex
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if bad {
				bad = false
				return durable.NoRetry(errors.New("this one"))
			}
			ds <- d
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Hour, Missed: durable.FireMissed}, durable.At(time.Now().Add(-90*time.Minute)))
		second := ds.next(t)
		var letters []durable.Info
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			letters = append(letters, d)
		}
		require.Len(t, letters, 1)
		require.Equal(t, "k", letters[0].Task.Key)
		require.Equal(t, second.Due.Add(-time.Hour), letters[0].Due)
		_, err := c.Requeue(ctx, letters[0].ID, durable.After(0))
		require.NoError(t, err)
		again := ds.next(t)
		require.Equal(t, "k", again.Key)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Pending == 1 && st.Running == 0 && st.Dead == 0
		}, soon, 5*time.Millisecond, "the requeued run does not repeat")
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

func TestWorker_HandBack(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			if len(ds) < 4 {
				return fmt.Errorf("wrapped: %w", durable.HandBack(errors.New("no room"), 10*time.Millisecond))
			}
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", MaxAttempts: 1}, durable.After(0))
		gone(t, c, "k")
		require.Len(t, ds, 4)
		first := ds.next(t)
		for range 3 {
			d := ds.next(t)
			require.Equal(t, 1, d.Attempt)
			require.Equal(t, first.Due, d.Due)
			require.Equal(t, first.IdempotencyKey(), d.IdempotencyKey())
			require.Greater(t, d.Token, first.Token)
		}
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 3, st.Released)
		require.Zero(t, st.Retried+st.Died)
	})
}

// A repeating task that always fails has one dead letter, not one for each run.
func TestDeadLetters_OneForATaskThatRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		var fail atomic.Bool
		fail.Store(true)
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if fail.Load() {
				return durable.NoRetry(errors.New(d.Due.String()))
			}
			ds <- d
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Millisecond, Missed: durable.LatestMissed}, durable.After(0))
		letter := func() durable.Info {
			var all []durable.Info
			for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
				require.NoError(t, err)
				all = append(all, d)
			}
			require.Len(t, all, 1)
			return all[0]
		}
		require.Eventually(t, func() bool { return w.Stats().Died >= 50 }, soon, 5*time.Millisecond)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Dead)
		_, err = c.Cancel(ctx, "k")
		require.NoError(t, err)
		gone(t, c, "k")
		st, err = c.Stats(ctx)
		require.NoError(t, err)
		d := letter()
		require.EqualValues(t, st.Died, d.Runs)
		require.Equal(t, "k", d.Task.Key)
		require.Zero(t, d.Task.Every)
		require.Len(t, d.Failures, 10)
		require.Equal(t, d.Due.String(), d.Failures[9].Error, "the error of the latest run")

		// The requeued run fails and becomes a separate dead letter.
		out, err := c.Requeue(ctx, d.ID, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == 1
		}, soon, 5*time.Millisecond)
		again := letter()
		require.Equal(t, 1, again.Runs)
		require.NotEqual(t, d.ID, again.ID)
		fail.Store(false)
		_, err = c.Requeue(ctx, again.ID, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, "k", ds.next(t).Key)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead+st.Pending+st.Running == 0
		}, soon, 5*time.Millisecond, "it does not repeat")
	})
}

func TestWorker_Timeouts(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithLease(200*time.Millisecond), durable.WithMaxCrashes(1))
		causes := make(chan error, 10)
		release := make(chan struct{})
		w.Handle("heeds", func(ctx context.Context, d durable.Delivery) error {
			_, has := ctx.Deadline()
			if !has {
				t.Error("no deadline")
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, durable.WithMaxAttempts(1))
		w.Handle("hangs", func(ctx context.Context, d durable.Delivery) error {
			<-release
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "heeds", Handler: "heeds", Timeout: 50 * time.Millisecond}, durable.After(0))
		require.ErrorIs(t, receive(t, causes), durable.ErrTimeout)
		require.Contains(t, becomes(t, c, "heeds", durable.Dead).Failures[0].Error, "took too long")

		schedule(t, c, durable.Task{Key: "hangs", Handler: "hangs", Timeout: 50 * time.Millisecond}, durable.After(0))
		info := becomes(t, c, "hangs", durable.Dead)
		require.Equal(t, 1, info.Crashes)
		close(release)
		require.Eventually(t, func() bool { return w.Stats().Lost == 1 }, soon, 5*time.Millisecond, "the store refuses the report")
	})
}

// The next worker makes the run a dead letter, and the task continues.
func TestWorker_PoisonEndsNoRepeatingTask(t *testing.T) {
	for name, test := range map[string]struct {
		task durable.Task
		lost int // leases, until the run dies
	}{
		"every":    {durable.Task{Key: "cron", Every: time.Minute}, durable.DefaultMaxCrashes},
		"schedule": {durable.Task{Key: "cron", Schedule: "minutes"}, durable.DefaultMaxCrashes},
		"latest":   {durable.Task{Key: "cron", Every: time.Minute, Missed: durable.LatestMissed}, durable.DefaultMaxCrashes},
		"attempts": {durable.Task{Key: "cron", Every: time.Minute, MaxAttempts: 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet, durable.WithSchedule("minutes", &times{n: 1 << 30, step: time.Minute}))
				release := make(chan struct{})
				var runs, hung atomic.Int64
				w := durable.NewWorker(c, durable.WithLease(time.Second))
				w.Handle("h", func(context.Context, durable.Delivery) error {
					if hung.Add(1) <= int64(test.lost) {
						<-release // like a handler that ignores its context
						return nil
					}
					runs.Add(1)
					return nil
				}, durable.WithTimeout(time.Second))
				start(t, w)
				defer close(release)
				schedule(t, c, test.task, durable.After(0))
				time.Sleep(time.Hour + time.Second)
				synctest.Wait()
				info, err := c.Get(ctx, "cron")
				require.NoError(t, err)
				require.Equal(t, durable.Pending, info.State)
				require.EqualValues(t, 60, runs.Load())
				n := 0
				for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
					require.NoError(t, err)
					require.Equal(t, store.DeadID("cron"), d.ID)
					require.Equal(t, []int{1, test.lost, test.lost}, []int{d.Runs, d.Crashes, d.Attempts})
					n++
				}
				require.Equal(t, 1, n)
			})
		})
	}
}

func TestShutdown_WaitsForHandlersAndHandsBackTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		quick, causes := make(chan struct{}), make(chan error, 10)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			if d.Key == "quick" {
				<-quick
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "quick"}, durable.After(0))
		schedule(t, c, durable.Task{Key: "slow"}, durable.After(0))
		ds.next(t)
		ds.next(t)

		stop, cancel := context.WithCancel(ctx)
		result := make(chan error, 1)
		go func() { result <- w.Shutdown(stop) }()
		none(t, done, 50*time.Millisecond)
		close(quick)
		gone(t, c, "quick")
		none(t, done, 50*time.Millisecond)
		cancel()
		require.ErrorIs(t, receive(t, causes), durable.ErrClosed)
		require.ErrorIs(t, receive(t, result), context.Canceled)
		require.NoError(t, receive(t, done))
		info, err := c.Get(ctx, "slow")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State)
		require.Zero(t, info.Attempts, "an attempt that was handed back does not count")
		require.Zero(t, w.Stats().Running)

		// The next worker gets the task immediately.
		next := durable.NewWorker(c)
		next.Handle("h", ds.handle)
		start(t, next)
		d := ds.next(t)
		require.Equal(t, "slow", d.Key)
		require.Equal(t, 1, d.Attempt)
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithShutdownTimeout(50*time.Millisecond))
		ds := make(deliveries, 10)
		hang := make(chan struct{})
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-hang // heeds nothing
			return nil
		})
		first, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- w.Run(first) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		cancel()
		require.NoError(t, receive(t, done))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State, "handed back, although the handler has not returned")

		// Call Run while a handler of the previous Run is still running. That handler
		// later releases a place of the previous Run.
		again, cancel := context.WithCancel(ctx)
		go func() { done <- w.Run(again) }()
		d := ds.next(t)
		require.Equal(t, 1, d.Attempt)
		require.ErrorContains(t, w.Run(ctx), "is running")
		close(hang)
		gone(t, c, "k")
		require.Eventually(t, func() bool { return w.Stats().Running == 0 }, soon, time.Millisecond)
		cancel()
		require.NoError(t, receive(t, done))
		require.Zero(t, w.Stats().Lost)

		require.NoError(t, w.Shutdown(ctx))
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
		w = durable.NewWorker(c)
		require.NoError(t, w.Shutdown(ctx), "before Run")
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
	})
}

// next is a function that implements Schedule.
type next func(time.Time) time.Time

func (f next) Next(t time.Time) time.Time { return f(t) }

// A task whose schedule does not advance must not keep the workers busy.
func TestWorker_SchedulesThatDoNotGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		calls := make(chan string, 100_000)
		step := func(d time.Duration) next { return func(t time.Time) time.Time { return t.Add(d) } }
		c := durable.New(mem, quiet,
			durable.WithSchedule("stays", step(0)),
			durable.WithSchedule("goes back", step(-time.Hour)),
			durable.WithSchedule("panics", next(func(time.Time) time.Time { panic("no") })),
			durable.WithSchedule("creeps", step(1)))
		w := durable.NewWorker(c)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			calls <- d.Key
			return nil
		})
		late := time.Now().Add(-time.Minute)
		for _, name := range []string{"stays", "goes back"} {
			schedule(t, c, durable.Task{Key: name, Schedule: name}, durable.After(0))
			schedule(t, c, durable.Task{Key: name + ", latest", Schedule: name, Missed: durable.LatestMissed}, durable.At(late))
			schedule(t, c, durable.Task{Key: name + ", dead", Schedule: name, Missed: durable.DeadMissed, MissedAfter: 1}, durable.At(late))
		}
		schedule(t, c, durable.Task{Key: "panics", Schedule: "panics", MaxAttempts: 1}, durable.After(0))
		start(t, w)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == 7
		}, soon, time.Millisecond)
		require.Empty(t, calls, "nothing was run")
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			want, attempts := "does not advance: after ", 0
			switch {
			case d.Task.Key == "panics":
				want, attempts = "panic in the schedule", 1
			case d.Task.Missed == durable.DeadMissed:
				want = "missed"
			}
			require.Contains(t, d.Failures[0].Error, want)
			require.Equal(t, attempts, d.Attempts)
		}

		// This schedule advances by less than a millisecond. The task still runs only
		// once a millisecond.
		begin := time.Now()
		schedule(t, c, durable.Task{Key: "creeps", Schedule: "creeps"}, durable.At(begin))
		for range 50 {
			require.Equal(t, "creeps", receive(t, calls))
		}
		info, err := c.Get(ctx, "creeps")
		require.NoError(t, err)
		require.GreaterOrEqual(t, info.Due.Sub(begin), 49*time.Millisecond)
		_, err = c.Cancel(ctx, "creeps")
		require.NoError(t, err)
	})
}

// A Worker's name is also the name of its Scheduler and a label of its goroutines.
func TestWithName(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		named := func() (n int) {
			for s := range timer.Schedulers() {
				if s.Name() == "mailer of this test" {
					n++
				}
			}
			return n
		}
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithName("mailer of this test"))
		running := make(chan map[string]string)
		goOn := make(chan struct{})
		w.Handle("remind", func(ctx context.Context, _ durable.Delivery) error {
			labels := make(map[string]string)
			pprof.ForLabels(ctx, func(key, value string) bool {
				labels[key] = value
				return true
			})
			running <- labels
			<-goOn
			return nil
		})
		require.Zero(t, named(), "the Worker does not run yet")
		schedule(t, c, durable.Task{Key: "k", Handler: "remind"}, durable.After(0))
		start(t, w)
		require.Equal(t, map[string]string{"worker": "mailer of this test", "handler": "remind"}, <-running)
		require.Equal(t, 1, named())
		var goroutines strings.Builder
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&goroutines, 1))
		require.Contains(t, goroutines.String(), `# labels: {"handler":"remind", "worker":"mailer of this test"}`)
		require.Contains(t, goroutines.String(), `# labels: {"worker":"mailer of this test"}`)
		close(goOn)
		gone(t, c, "k")
		require.NoError(t, w.Shutdown(ctx))
		require.Zero(t, named(), "the Worker has ended")
	})
}
