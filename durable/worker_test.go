package durable_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/tickless/tickless/timer"
)

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
