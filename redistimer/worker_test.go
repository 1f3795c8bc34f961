package redistimer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

var quiet = redistimer.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// soon is how long a test waits for what comes at once, on a machine that has
// other things to do.
const soon = 30 * time.Second

// start runs a worker until the test ends.
func start(t *testing.T, w *redistimer.Worker) {
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

// deliveries collects what a handler gets.
type deliveries chan redistimer.Delivery

func (ds deliveries) handle(_ context.Context, d redistimer.Delivery) error {
	ds <- d
	return nil
}

func (ds deliveries) next(t *testing.T) redistimer.Delivery {
	t.Helper()
	return receive(t, ds)
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(soon):
		t.Fatal("nothing has come")
	}
	panic("not reached")
}

func none[T any](t *testing.T, c <-chan T, d time.Duration) {
	t.Helper()
	select {
	case x := <-c:
		t.Fatalf("%v has come", x)
	case <-time.After(d):
	}
}

func schedule(t *testing.T, c *redistimer.Client, x redistimer.Task, w redistimer.When) redistimer.Outcome {
	t.Helper()
	if x.Handler == "" {
		x.Handler = "h"
	}
	out, err := c.Schedule(ctx, x, w)
	require.NoError(t, err)
	return out
}

// gone waits until a task is no more.
func gone(t *testing.T, c *redistimer.Client, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := c.Get(ctx, key)
		return errors.Is(err, redistimer.ErrNotFound)
	}, soon, 5*time.Millisecond)
}

// becomes waits until a task is in a state.
func becomes(t *testing.T, c *redistimer.Client, key string, s redistimer.State) redistimer.Info {
	t.Helper()
	var info redistimer.Info
	require.Eventually(t, func() bool {
		var err error
		info, err = c.Get(ctx, key)
		return err == nil && info.State == s
	}, soon, 5*time.Millisecond)
	return info
}

func onServer(t *testing.T) *redistimer.Client {
	t.Helper()
	r := redistest.Start(t).Client()
	t.Cleanup(func() { r.Close() })
	return redistimer.New(r, quiet)
}

func TestWorker_RunsEveryTaskOnceAndNoneEarly(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		const n = 500
		var mu sync.Mutex
		runs := make(map[string]int)
		all := make(chan struct{})
		handle := func(_ context.Context, d redistimer.Delivery) error {
			now := time.Now() // the clock of Redis, which is on this machine
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
			w := redistimer.NewWorker(c, redistimer.WithConcurrency(20))
			w.Handle("h", handle)
			start(t, w)
		}
		var items []redistimer.Item
		for i := range n {
			key := fmt.Sprint("k", i)
			items = append(items, redistimer.Item{
				Task: redistimer.Task{Key: key, Handler: "h", Body: []byte("body of " + key)},
				When: redistimer.After(rand.N(2 * time.Second)),
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
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		// One shard and no safety net: a lost wake-up is a task that is not run.
		c := redistimer.New(r, quiet, redistimer.WithShards(1))
		ds := make(deliveries, 10)
		for range 2 {
			w := redistimer.NewWorker(c, redistimer.WithSafetyInterval(time.Hour))
			w.Handle("h", ds.handle)
			start(t, w)
		}
		schedule(t, c, redistimer.Task{Key: "late"}, redistimer.After(time.Hour))
		for i := range 20 {
			key := fmt.Sprint("k", i)
			schedule(t, c, redistimer.Task{Key: key}, redistimer.After(time.Duration(20-i)*10*time.Millisecond))
			if i%3 == 0 {
				require.Equal(t, key, ds.next(t).Key)
			} else {
				_, err := c.Reschedule(ctx, key, redistimer.After(0))
				require.NoError(t, err)
				require.Equal(t, key, ds.next(t).Key)
			}
		}
		_, err := c.Reschedule(ctx, "late", redistimer.After(0))
		require.NoError(t, err)
		require.Equal(t, "late", ds.next(t).Key)
	})
}

func TestWorker_RetriesAndTellsTheAttempts(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
			ds <- d
			switch d.Attempt {
			case 1:
				return errors.New("first error")
			case 2:
				panic("second error")
			}
			return nil
		}, redistimer.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, redistimer.Task{Key: "k"}, redistimer.After(0))
		first, second, third := ds.next(t), ds.next(t), ds.next(t)
		require.Equal(t, []int{1, 2, 3}, []int{first.Attempt, second.Attempt, third.Attempt})
		require.Less(t, first.Token, second.Token)
		require.Less(t, second.Token, third.Token)
		require.True(t, first.Due.Equal(second.Due) && second.Due.Equal(third.Due))
		require.Equal(t, first.IdempotencyKey(), third.IdempotencyKey())
		gone(t, c, "k")

		schedule(t, c, redistimer.Task{Key: "k", MaxAttempts: 2}, redistimer.After(0))
		require.NotEqual(t, first.IdempotencyKey(), func() string { d := ds.next(t); return d.IdempotencyKey() }())
		info := becomes(t, c, "k", redistimer.Dead)
		require.Equal(t, 2, info.Attempts)
		require.Len(t, info.Failures, 2)
		require.Equal(t, "first error", info.Failures[0].Error)
		require.Equal(t, 1, info.Failures[0].Attempt)
		require.Contains(t, info.Failures[1].Error, "second error")
	})
}

func TestWorker_NoRetryAndRetryAfter(t *testing.T) {
	c := onServer(t)
	w := redistimer.NewWorker(c)
	wait := 300 * time.Millisecond
	times := make(chan time.Time, 10)
	w.Handle("never", func(context.Context, redistimer.Delivery) error {
		return fmt.Errorf("wrapped: %w", redistimer.NoRetry(errors.New("gone for good")))
	})
	w.Handle("after", func(_ context.Context, d redistimer.Delivery) error {
		times <- time.Now()
		if d.Attempt == 1 {
			return fmt.Errorf("wrapped: %w", redistimer.RetryAfter(errors.New("busy"), wait))
		}
		return nil
	}, redistimer.WithBackoff(0, 0))
	start(t, w)
	schedule(t, c, redistimer.Task{Key: "never", Handler: "never"}, redistimer.After(0))
	schedule(t, c, redistimer.Task{Key: "after", Handler: "after"}, redistimer.After(0))
	info := becomes(t, c, "never", redistimer.Dead)
	require.Equal(t, 1, info.Attempts)
	require.Equal(t, "wrapped: gone for good", info.Failures[0].Error)
	first, second := receive(t, times), receive(t, times)
	require.GreaterOrEqual(t, second.Sub(first), wait)
}

// A delay beyond all bounds puts the task off as far as a task can be. It used to break
// the script that takes reports, for all that were reported with it, or to count as
// none.
func TestWorker_DelaysBeyondAllBounds(t *testing.T) {
	r := redistest.Start(t).Client()
	t.Cleanup(func() { r.Close() })
	c := redistimer.New(r, quiet, redistimer.WithShards(1))
	w := redistimer.NewWorker(c)
	var calls atomic.Int64
	put := map[string]func(error, time.Duration) error{"retry": redistimer.RetryAfter, "back": redistimer.HandBack}
	for name, off := range put {
		w.Handle(name, func(context.Context, redistimer.Delivery) error {
			calls.Add(1)
			return off(errors.New("much later"), math.MaxInt64)
		})
	}
	w.Handle("good", func(context.Context, redistimer.Delivery) error { return nil })
	for name := range put {
		schedule(t, c, redistimer.Task{Key: name, Handler: name}, redistimer.After(0))
	}
	for i := range 50 {
		schedule(t, c, redistimer.Task{Key: fmt.Sprint(i), Handler: "good"}, redistimer.After(0))
	}
	start(t, w)
	for i := range 50 {
		gone(t, c, fmt.Sprint(i))
	}
	for name := range put {
		info := becomes(t, c, name, redistimer.Pending)
		require.Greater(t, time.Until(info.At), 100*365*24*time.Hour)
	}
	require.EqualValues(t, len(put), calls.Load())
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 50, st.Done)
	require.Zero(t, st.Refused+st.Crashed)
}

func TestSchedule_RefusesTimesBeyondAllBounds(t *testing.T) {
	c := onServer(t)
	for _, task := range []redistimer.Task{
		{Key: "k", Handler: "h", Every: math.MaxInt64},
		{Key: "k", Handler: "h", Timeout: math.MaxInt64},
		{Key: "k", Handler: "h", Missed: redistimer.DeadMissed, MissedAfter: math.MaxInt64},
	} {
		_, err := c.Schedule(ctx, task, redistimer.After(0))
		require.ErrorIs(t, err, redistimer.ErrInvalid)
	}
}

func TestDeadLetters_ListRequeuePurge(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		fail := true
		var mu sync.Mutex
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return errors.New("no")
			}
			ds <- d
			return nil
		}, redistimer.WithMaxAttempts(1))
		start(t, w)
		const n = 300
		var items []redistimer.Item
		for i := range n {
			items = append(items, redistimer.Item{
				Task: redistimer.Task{Key: fmt.Sprint(i), Handler: "h", Body: []byte("b")}, When: redistimer.After(0),
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
		for d, err := range c.DeadLetters(ctx) {
			require.NoError(t, err)
			require.False(t, seen[d.ID], "twice: %s", d.ID)
			seen[d.ID] = true
			require.Equal(t, d.ID, d.Task.Key)
			require.Equal(t, "b", string(d.Task.Body))
			require.Equal(t, 1, d.Attempts)
			require.Equal(t, "no", d.Failures[0].Error)
			require.WithinDuration(t, time.Now(), d.Died, time.Minute)
			// Taking them out as one goes leaves none out.
			if len(seen)%2 == 0 {
				out, err := c.Purge(ctx, d.ID)
				require.NoError(t, err)
				require.Equal(t, redistimer.Removed, out)
			}
		}
		require.Len(t, seen, n)

		requeued := 0
		for d, err := range c.DeadLetters(ctx) {
			require.NoError(t, err)
			out, err := c.Requeue(ctx, d.ID, redistimer.After(0))
			require.NoError(t, err)
			require.Equal(t, redistimer.Moved, out)
			require.Equal(t, 1, ds.next(t).Attempt)
			requeued++
		}
		require.Equal(t, n/2, requeued)
		out, err := c.Requeue(ctx, "absent", redistimer.After(0))
		require.NoError(t, err)
		require.Equal(t, redistimer.Absent, out)
		out, err = c.Purge(ctx, "absent")
		require.NoError(t, err)
		require.Equal(t, redistimer.Absent, out)
	})
}

func TestDeadLetters_ManyAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		// What fails at once, again and again, does not keep a requeueing going.
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error { return redistimer.NoRetry(errors.New("no")) })
		start(t, w)
		const n = 300
		for i := range n {
			schedule(t, c, redistimer.Task{Key: fmt.Sprint(i), Body: []byte{byte(i % 3)}}, redistimer.After(0))
		}
		dead := func(n int64) {
			t.Helper()
			require.Eventually(t, func() bool {
				st, err := c.Stats(ctx)
				return err == nil && st.Dead == n && st.Pending+st.Running == 0
			}, soon, 5*time.Millisecond)
		}
		dead(n)
		of := func(b byte) func(redistimer.DeadLetter) bool {
			return func(d redistimer.DeadLetter) bool { return d.Task.Body[0] == b }
		}
		time.Sleep(time.Millisecond) // what died at this very microsecond is left
		moved, err := c.RequeueDead(ctx, redistimer.After(time.Hour), of(0))
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n/3, st.Pending)
		removed, err := c.PurgeDead(ctx, of(1))
		require.NoError(t, err)
		require.Equal(t, n/3, removed)
		moved, err = c.RequeueDead(ctx, redistimer.After(0), nil)
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		require.Eventually(t, func() bool { return w.Stats().Died == n+n/3 }, soon, 5*time.Millisecond)
		removed, err = c.PurgeDead(ctx, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, removed, n/3)
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		_, err = c.PurgeDead(stopped, nil)
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.RequeueDead(ctx, redistimer.When{}, nil)
		require.ErrorIs(t, err, redistimer.ErrInvalid)
	})
}

func TestWorker_ProlongsItsLeases(t *testing.T) {
	c := onServer(t)
	const lease = 300 * time.Millisecond
	ds := make(deliveries, 10)
	for range 2 {
		w := redistimer.NewWorker(c, redistimer.WithLease(lease), redistimer.WithSafetyInterval(50*time.Millisecond))
		w.Handle("h", func(ctx context.Context, d redistimer.Delivery) error {
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
	schedule(t, c, redistimer.Task{Key: "k"}, redistimer.After(0))
	ds.next(t)
	gone(t, c, "k")
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Crashed)
	require.Empty(t, ds)
}

func TestWorker_CutsOffWhatItCannotProlong(t *testing.T) {
	s := redistest.Start(t)
	r := s.Client(func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond; o.MaxRetries = -1 })
	defer r.Close()
	c := redistimer.New(r, quiet)
	const lease = time.Second
	w := redistimer.NewWorker(c, redistimer.WithLease(lease))
	begun := make(chan time.Time, 1)
	ended := make(chan time.Time, 1)
	w.Handle("h", func(ctx context.Context, d redistimer.Delivery) error {
		if d.Attempt > 1 {
			return nil
		}
		begun <- time.Now()
		<-ctx.Done()
		ended <- time.Now()
		if cause := context.Cause(ctx); !errors.Is(cause, redistimer.ErrLeaseLost) {
			t.Errorf("cancelled because of: %v", cause)
		}
		return ctx.Err()
	}, redistimer.WithBackoff(0, 0))
	start(t, w)
	schedule(t, c, redistimer.Task{Key: "k"}, redistimer.After(0))
	from := receive(t, begun)
	s.Suspend()
	to := receive(t, ended)
	s.Resume()
	if held := to.Sub(from); held > 2*lease {
		t.Logf("the context was cancelled after %v only: the machine is busy", held)
	}
	gone(t, c, "k")
}

func TestCancel_OfARunningTask(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c, redistimer.WithLease(300*time.Millisecond))
		ds, causes := make(deliveries, 10), make(chan error, 10)
		w.Handle("h", func(ctx context.Context, d redistimer.Delivery) error {
			ds <- d
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, redistimer.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, redistimer.Task{Key: "k", Every: time.Millisecond}, redistimer.After(0))
		ds.next(t)
		out, err := c.Cancel(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, redistimer.Stopping, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Stopping)
		require.ErrorIs(t, receive(t, causes), redistimer.ErrCancelled)
		gone(t, c, "k")
		require.Empty(t, ds, "no other attempt, and no other run")
	})
}

func TestSchedule_OfARunningTaskFollows(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		ds, end := make(deliveries, 10), make(chan error)
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		schedule(t, c, redistimer.Task{Key: "k", Body: []byte("1")}, redistimer.After(0))
		require.Equal(t, "1", string(ds.next(t).Body))
		out := schedule(t, c, redistimer.Task{Key: "k", Body: []byte("2")}, redistimer.After(0))
		require.Equal(t, redistimer.Following, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Following)
		require.Equal(t, redistimer.Running, info.State)
		none(t, ds, 50*time.Millisecond)
		end <- errors.New("fails, and is not tried again")
		d := ds.next(t)
		require.Equal(t, "2", string(d.Body))
		require.Equal(t, 1, d.Attempt)
		end <- nil
		gone(t, c, "k")
	})
}

func TestWorker_Repeats(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		ds := make(deliveries, 100)
		w := redistimer.NewWorker(c, redistimer.WithSchedule("thrice", &times{n: 2, step: 20 * time.Millisecond}))
		w.Handle("h", ds.handle)
		start(t, w)
		const every = 20 * time.Millisecond
		schedule(t, c, redistimer.Task{Key: "every", Every: every}, redistimer.After(0))
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
		schedule(t, c, redistimer.Task{Key: "schedule", Schedule: "thrice"}, redistimer.After(0))
		for range 3 {
			require.Equal(t, "schedule", ds.next(t).Key)
		}
		gone(t, c, "schedule")
	})
}

// times is a schedule with n more times.
type times struct {
	n    int
	step time.Duration
}

func (s *times) Next(t time.Time) time.Time {
	if s.n == 0 {
		return time.Time{}
	}
	s.n--
	return t.Add(s.step)
}

// next is a schedule.
type next func(time.Time) time.Time

func (f next) Next(t time.Time) time.Time { return f(t) }

// A schedule that does not go on does not keep the workers busy.
func TestWorker_SchedulesThatDoNotGoOn(t *testing.T) {
	c := onServer(t)
	calls := make(chan string, 100_000)
	step := func(d time.Duration) next { return func(t time.Time) time.Time { return t.Add(d) } }
	w := redistimer.NewWorker(c,
		redistimer.WithSchedule("stays", step(0)),
		redistimer.WithSchedule("goes back", step(-time.Hour)),
		redistimer.WithSchedule("panics", next(func(time.Time) time.Time { panic("no") })),
		redistimer.WithSchedule("creeps", step(1)))
	w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
		calls <- d.Key
		return nil
	})
	late := time.Now().Add(-time.Minute)
	for _, name := range []string{"stays", "goes back"} {
		schedule(t, c, redistimer.Task{Key: name, Schedule: name}, redistimer.After(0))
		schedule(t, c, redistimer.Task{Key: name + ", latest", Schedule: name, Missed: redistimer.LatestMissed}, redistimer.At(late))
		schedule(t, c, redistimer.Task{Key: name + ", dead", Schedule: name, Missed: redistimer.DeadMissed}, redistimer.At(late))
	}
	schedule(t, c, redistimer.Task{Key: "panics", Schedule: "panics", MaxAttempts: 1}, redistimer.After(0))
	start(t, w)
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Dead == 7
	}, soon, time.Millisecond)
	require.Empty(t, calls, "nothing was run")
	for d, err := range c.DeadLetters(ctx) {
		require.NoError(t, err)
		require.Zero(t, d.Attempts)
		want := "does not go on: after "
		switch {
		case d.Task.Key == "panics":
			want = "panic in the schedule"
		case d.Task.Missed == redistimer.DeadMissed:
			want = "missed"
		}
		require.Contains(t, d.Failures[0].Error, want)
	}

	// One that goes on by less than a millisecond has it run each millisecond.
	begin := time.Now()
	schedule(t, c, redistimer.Task{Key: "creeps", Schedule: "creeps"}, redistimer.At(begin))
	for range 50 {
		require.Equal(t, "creeps", receive(t, calls))
	}
	info, err := c.Get(ctx, "creeps")
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.Due.Sub(begin), 49*time.Millisecond)
	_, err = c.Cancel(ctx, "creeps")
	require.NoError(t, err)
}

func TestWorker_MissedRuns(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		ds := make(deliveries, 1000)
		ago := time.Now().Add(-10*time.Hour - 30*time.Minute).Truncate(time.Microsecond)
		for _, x := range []redistimer.Task{
			{Key: "fire", Every: time.Hour},
			{Key: "latest", Every: time.Hour, Missed: redistimer.LatestMissed},
			{Key: "dead", Every: time.Hour, Missed: redistimer.DeadMissed, MissedAfter: 100 * time.Minute},
			{Key: "once", Missed: redistimer.DeadMissed, MissedAfter: time.Hour},
			{Key: "once, in time", Missed: redistimer.DeadMissed, MissedAfter: 24 * time.Hour},
			{Key: "once, latest", Missed: redistimer.LatestMissed},
		} {
			schedule(t, c, x, redistimer.At(ago))
		}
		w := redistimer.NewWorker(c)
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
			info := becomes(t, c, key, redistimer.Pending)
			require.Equal(t, ago.Add(11*time.Hour), info.At, key)
		}
		died := make(map[string]int)
		for d, err := range c.DeadLetters(ctx) {
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

func TestWorker_ARepeatingTaskSurvivesADeadRun(t *testing.T) {
	c := onServer(t)
	w := redistimer.NewWorker(c)
	ds := make(deliveries, 100)
	bad := true
	var mu sync.Mutex
	w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if bad {
			bad = false
			return redistimer.NoRetry(errors.New("this one"))
		}
		ds <- d
		return nil
	})
	start(t, w)
	schedule(t, c, redistimer.Task{Key: "k", Every: time.Hour}, redistimer.At(time.Now().Add(-90*time.Minute)))
	second := ds.next(t)
	var letters []redistimer.DeadLetter
	for d, err := range c.DeadLetters(ctx) {
		require.NoError(t, err)
		letters = append(letters, d)
	}
	require.Len(t, letters, 1)
	require.Equal(t, "k", letters[0].Task.Key)
	require.Equal(t, second.Due.Add(-time.Hour), letters[0].Due)
	_, err := c.Requeue(ctx, letters[0].ID, redistimer.After(0))
	require.NoError(t, err)
	again := ds.next(t)
	require.Equal(t, "k", again.Key)
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Pending == 1 && st.Running == 0 && st.Dead == 0
	}, soon, 5*time.Millisecond, "the requeued run does not repeat")
}

func TestPause_KeepsTasksBack(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c, redistimer.WithSafetyInterval(time.Hour))
		ds := make(deliveries, 100)
		w.Handle("h", ds.handle)
		require.NoError(t, c.Pause(ctx))
		start(t, w)
		for i := range 50 {
			schedule(t, c, redistimer.Task{Key: fmt.Sprint(i)}, redistimer.After(0))
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

// A rolling deploy: workers that do not have a handler yet leave its tasks to the
// one that does, and burn no attempt.
func TestWorker_LeavesWhatItDoesNotKnowToOthers(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		const n = 100
		ds := make(deliveries, 2*n)
		var workers []*redistimer.Worker
		for i := range 3 {
			w := redistimer.NewWorker(c, redistimer.WithMaxAttempts(1))
			w.Handle("old", ds.handle)
			if i == 2 {
				w = redistimer.NewWorker(c, redistimer.WithMaxAttempts(1), redistimer.WithSchedule("hourly", &times{n: 1, step: time.Hour}))
				w.Handle("new", ds.handle)
				w.Handle("old", ds.handle)
				// The others see all of it first.
				require.Eventually(t, func() bool { return workers[0].Stats().Unknown+workers[1].Stats().Unknown > n }, soon, 5*time.Millisecond)
			}
			start(t, w)
			workers = append(workers, w)
			if i > 0 {
				continue
			}
			for k := range n {
				schedule(t, c, redistimer.Task{Key: fmt.Sprint("k", k), Handler: "new", MaxAttempts: 1}, redistimer.After(0))
			}
			schedule(t, c, redistimer.Task{Key: "schedule", Handler: "old", Schedule: "hourly", MaxAttempts: 1}, redistimer.After(0))
		}
		schedule(t, c, redistimer.Task{Key: "old", Handler: "old"}, redistimer.After(0))
		for range n + 2 {
			require.Equal(t, 1, ds.next(t).Attempt)
		}
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Done == n+2
		}, soon, 5*time.Millisecond)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Dead+st.Retried)
		require.Greater(t, st.Unknown, int64(n))
		require.Empty(t, ds)
	})
}

// What nobody knows stays pending, is as late as it is, and runs under its own
// idempotency key once somebody knows it.
func TestWorker_WhatNobodyKnowsStaysPending(t *testing.T) {
	c := onServer(t)
	old := redistimer.NewWorker(c)
	start(t, old)
	due := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	schedule(t, c, redistimer.Task{Key: "k", Handler: "new", MaxAttempts: 1}, redistimer.At(due))
	require.Eventually(t, func() bool { return old.Stats().Unknown > 0 }, soon, 5*time.Millisecond)
	info := becomes(t, c, "k", redistimer.Pending)
	require.Equal(t, due, info.Due)
	require.True(t, info.At.After(time.Now()), "it is not looked at all the time: %v", info.At)
	require.Zero(t, info.Attempts)
	ds := make(deliveries, 1)
	w := redistimer.NewWorker(c)
	w.Handle("new", ds.handle)
	start(t, w)
	require.Equal(t, redistimer.Moved, func() redistimer.Outcome {
		out, err := c.Reschedule(ctx, "k", redistimer.After(0))
		require.NoError(t, err)
		return out
	}())
	require.Equal(t, 1, ds.next(t).Attempt)
}

func TestWorker_HandBack(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
			ds <- d
			if len(ds) < 4 {
				return fmt.Errorf("wrapped: %w", redistimer.HandBack(errors.New("no room"), 10*time.Millisecond))
			}
			return nil
		})
		start(t, w)
		schedule(t, c, redistimer.Task{Key: "k", MaxAttempts: 1}, redistimer.After(0))
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

// A worker that is frozen takes a wake-up and does nothing about it.
func TestWorker_ComesAlthoughAFrozenOneTookTheWakeUp(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet, redistimer.WithShards(1))
		_, err := c.Check(ctx)
		require.NoError(t, err)
		wake := strings.TrimSuffix(keysOf(t, r)[0], "meta") + "wake"
		w := redistimer.NewWorker(c, redistimer.WithSafetyInterval(time.Hour))
		ds := make(deliveries, 1)
		w.Handle("h", ds.handle)
		for i := range 3 {
			frozen := make(chan error, 1)
			go func() { frozen <- r.BZPopMin(ctx, time.Minute, wake).Err() }()
			if i == 0 {
				time.Sleep(50 * time.Millisecond) // it is the first in the line
				start(t, w)
				// It knows that there is nothing, so that it has to be woken.
				require.Eventually(t, func() bool { return w.Stats().Empty == 1 }, soon, time.Millisecond)
				schedule(t, c, redistimer.Task{Key: "far"}, redistimer.After(time.Hour))
				require.NoError(t, receive(t, frozen))
				require.Eventually(t, func() bool { return w.Stats().Claims > 1 }, soon, time.Millisecond)
				go func() { frozen <- r.BZPopMin(ctx, time.Minute, wake).Err() }()
			}
			time.Sleep(50 * time.Millisecond)
			schedule(t, c, redistimer.Task{Key: fmt.Sprint("k", i)}, redistimer.After(0))
			require.Equal(t, fmt.Sprint("k", i), ds.next(t).Key)
			if err := r.ZAdd(ctx, wake, redis.Z{Member: "end"}).Err(); err != nil {
				t.Error(err)
			}
			require.NoError(t, receive(t, frozen))
		}
	})
}

// A task that repeats and fails for ever has one dead letter, not one a run.
func TestDeadLetters_OneForATaskThatRepeats(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		var fail atomic.Bool
		fail.Store(true)
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d redistimer.Delivery) error {
			if fail.Load() {
				return redistimer.NoRetry(errors.New(d.Due.String()))
			}
			ds <- d
			return nil
		})
		start(t, w)
		schedule(t, c, redistimer.Task{Key: "k", Every: time.Millisecond, Missed: redistimer.LatestMissed}, redistimer.After(0))
		letter := func() redistimer.DeadLetter {
			var all []redistimer.DeadLetter
			for d, err := range c.DeadLetters(ctx) {
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
		require.Equal(t, d.Due.String(), d.Failures[9].Error, "it is of the latest")
		keys := len(keysOf(t, r))

		// The latest of them runs once more, and fails: it is a dead letter by itself.
		out, err := c.Requeue(ctx, d.ID, redistimer.After(0))
		require.NoError(t, err)
		require.Equal(t, redistimer.Moved, out)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == 1
		}, soon, 5*time.Millisecond)
		again := letter()
		require.Equal(t, 1, again.Runs)
		require.NotEqual(t, d.ID, again.ID)
		fail.Store(false)
		_, err = c.Requeue(ctx, again.ID, redistimer.After(0))
		require.NoError(t, err)
		require.Equal(t, "k", ds.next(t).Key)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead+st.Pending+st.Running == 0
		}, soon, 5*time.Millisecond, "it does not repeat")
		require.Less(t, len(keysOf(t, r)), keys, "nothing is left of it")
	})
}

func TestWorker_Timeouts(t *testing.T) {
	c := onServer(t)
	w := redistimer.NewWorker(c, redistimer.WithLease(200*time.Millisecond), redistimer.WithMaxCrashes(1))
	causes := make(chan error, 10)
	release := make(chan struct{})
	w.Handle("heeds", func(ctx context.Context, d redistimer.Delivery) error {
		_, has := ctx.Deadline()
		if !has {
			t.Error("no deadline")
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}, redistimer.WithMaxAttempts(1))
	w.Handle("hangs", func(ctx context.Context, d redistimer.Delivery) error {
		<-release
		return nil
	})
	start(t, w)
	schedule(t, c, redistimer.Task{Key: "heeds", Handler: "heeds", Timeout: 50 * time.Millisecond}, redistimer.After(0))
	require.ErrorIs(t, receive(t, causes), redistimer.ErrTimeout)
	require.Contains(t, becomes(t, c, "heeds", redistimer.Dead).Failures[0].Error, "took too long")

	schedule(t, c, redistimer.Task{Key: "hangs", Handler: "hangs", Timeout: 50 * time.Millisecond}, redistimer.After(0))
	info := becomes(t, c, "hangs", redistimer.Dead)
	require.Equal(t, 1, info.Crashes)
	close(release)
	require.Eventually(t, func() bool { return w.Stats().Lost == 1 }, soon, 5*time.Millisecond, "its report is refused")
}

func TestShutdown_WaitsForHandlersAndHandsBackTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, r redis.UniversalClient) {
		c := redistimer.New(r, quiet)
		w := redistimer.NewWorker(c)
		ds := make(deliveries, 10)
		quick, causes := make(chan struct{}), make(chan error, 10)
		w.Handle("h", func(ctx context.Context, d redistimer.Delivery) error {
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
		schedule(t, c, redistimer.Task{Key: "quick"}, redistimer.After(0))
		schedule(t, c, redistimer.Task{Key: "slow"}, redistimer.After(0))
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
		require.ErrorIs(t, receive(t, causes), redistimer.ErrShutdown)
		require.ErrorIs(t, receive(t, result), context.Canceled)
		require.NoError(t, receive(t, done))
		info, err := c.Get(ctx, "slow")
		require.NoError(t, err)
		require.Equal(t, redistimer.Pending, info.State)
		require.Zero(t, info.Attempts, "an attempt that was handed back does not count")
		require.Zero(t, w.Stats().Running)

		// The next worker has it at once.
		next := redistimer.NewWorker(c)
		next.Handle("h", ds.handle)
		start(t, next)
		d := ds.next(t)
		require.Equal(t, "slow", d.Key)
		require.Equal(t, 1, d.Attempt)
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	c := onServer(t)
	w := redistimer.NewWorker(c, redistimer.WithShutdownTimeout(50*time.Millisecond))
	ds := make(deliveries, 10)
	hang := make(chan struct{})
	w.Handle("h", func(ctx context.Context, d redistimer.Delivery) error {
		ds <- d
		<-hang // heeds nothing
		return nil
	})
	first, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(first) }()
	schedule(t, c, redistimer.Task{Key: "k"}, redistimer.After(0))
	ds.next(t)
	cancel()
	require.NoError(t, receive(t, done))
	info, err := c.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, redistimer.Pending, info.State, "handed back, although the handler has not returned")

	// Again, while a handler of before still runs. It is another place that this one
	// gives back.
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
	require.ErrorIs(t, w.Run(ctx), redistimer.ErrShutdown)
	w = redistimer.NewWorker(c)
	require.NoError(t, w.Shutdown(ctx), "before Run")
	require.ErrorIs(t, w.Run(ctx), redistimer.ErrShutdown)
}

// A server that is not there yet is waited for, as one is that goes away later.
func TestRun_WaitsForTheServer(t *testing.T) {
	s := redistest.Start(t)
	r := s.Client()
	defer r.Close()
	s.Kill()
	c := redistimer.New(r, quiet)

	w := redistimer.NewWorker(c)
	stop, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(stop) }()
	none(t, done, 100*time.Millisecond)
	cancel()
	require.NoError(t, receive(t, done), "its context ends the waiting")

	ds := make(deliveries, 1)
	w = redistimer.NewWorker(c)
	w.Handle("h", ds.handle)
	start(t, w)
	time.Sleep(50 * time.Millisecond)
	s.Restart()
	schedule(t, c, redistimer.Task{Key: "k"}, redistimer.After(0))
	require.Equal(t, "k", ds.next(t).Key)
	gone(t, c, "k")

	// What does not pass by itself is an error at once.
	require.NoError(t, r.ConfigSet(ctx, "requirepass", "secret").Err())
	stranger := s.Client()
	defer stranger.Close()
	require.Error(t, redistimer.NewWorker(redistimer.New(stranger, quiet)).Run(ctx))
}

// Clients with which nothing can ever be done are refused at once.
func TestRun_RefusesClientsThatCannotWork(t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	server := redistest.Start(t)
	closed := server.Client()
	require.NoError(t, closed.Close())
	c := redistimer.New(closed, quiet)
	require.ErrorIs(t, redistimer.NewWorker(c).Run(ctx), redis.ErrClosed)

	// A node of a cluster has some of the shards.
	cluster := redistest.StartCluster(t, 3, 0)
	for _, s := range cluster.Servers {
		r := s.Client()
		defer r.Close()
		c := redistimer.New(r, quiet)
		_, err := c.Check(ctx)
		require.ErrorContains(t, err, "needs a redis.ClusterClient")
		require.ErrorContains(t, redistimer.NewWorker(c).Run(ctx), "needs a redis.ClusterClient")
	}
}

func TestCheck_SeesHowTheServerIsSetUp(t *testing.T) {
	s := redistest.Start(t)
	r := s.Client()
	defer r.Close()
	c := redistimer.New(r, quiet)
	h, err := c.Check(ctx)
	require.NoError(t, err)
	require.Len(t, h.Nodes, 1)
	require.Equal(t, "noeviction", h.Nodes[0].Eviction)
	require.Len(t, h.Warnings, 1)
	require.Contains(t, h.Warnings[0], "restart loses every task")

	require.NoError(t, r.ConfigSet(ctx, "appendonly", "yes").Err())
	h, err = c.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, h.Warnings)

	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "100mb").Err())
	require.NoError(t, r.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	_, err = c.Check(ctx)
	require.ErrorIs(t, err, redistimer.ErrEviction)
	require.ErrorIs(t, redistimer.NewWorker(c).Run(ctx), redistimer.ErrEviction)
}

func TestSchedule_Replicated(t *testing.T) {
	cl := redistest.StartCluster(t, 3, 1)
	r := cl.Client()
	defer r.Close()
	c := redistimer.New(r, quiet)
	for i := range 20 {
		_, err := c.Schedule(ctx, redistimer.Task{Key: fmt.Sprint(i), Handler: "h"}, redistimer.After(time.Hour),
			redistimer.Replicated(1, soon))
		require.NoError(t, err)
	}
	out, err := c.Schedule(ctx, redistimer.Task{Key: "k", Handler: "h"}, redistimer.After(time.Hour),
		redistimer.Replicated(2, 10*time.Millisecond))
	require.ErrorIs(t, err, redistimer.ErrNotReplicated)
	require.Equal(t, redistimer.Created, out)
}
