package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/tickless/tickless/timertest"
)

// A worker whose store does not answer cancels its handlers before their leases end,
// and the tasks run again.
func TestWorker_CutsOffWhatItCannotProlong(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		c := durable.New(f, quiet)
		const lease = 10 * time.Second
		w := durable.NewWorker(c, durable.WithLease(lease))
		begun, ended := make(chan time.Time, 1), make(chan time.Time, 1)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			begun <- time.Now()
			<-ctx.Done()
			ended <- time.Now()
			if cause := context.Cause(ctx); !errors.Is(cause, durable.ErrLeaseLost) {
				t.Errorf("cancelled because of: %v", cause)
			}
			return ctx.Err()
		}, durable.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		from := <-begun
		f.frozen.Store(true)
		held := (<-ended).Sub(from)
		require.InDelta(t, lease*9/10, held, float64(time.Millisecond))
		f.frozen.Store(false)
		gone(t, c, "k")
		require.EqualValues(t, 1, w.Stats().Failed+w.Stats().Lost)
	})
}

func TestRun_WaitsForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		f.checks.Store(7)
		c := durable.New(f, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 1)
		w.Handle("h", ds.handle)
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		require.Equal(t, "k", ds.next(t).Key)
	})
}

// Shutdown does not wait for a Run that has not reached its store yet.
func TestShutdown_OfARunThatBegins(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		f.frozen.Store(true)
		w := durable.NewWorker(durable.New(f, quiet))
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
		require.Zero(t, time.Since(begin))
	})
}

// unfit is a store that Check refuses.
type unfit struct {
	store.Store
	err error
}

func (u unfit) Check(context.Context) (store.Health, error) { return store.Health{}, u.err }

func TestRun_RefusesAStoreThatWillNotDo(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		w := durable.NewWorker(durable.New(unfit{mem, durable.ErrSchema}, quiet))
		require.ErrorIs(t, w.Run(ctx), durable.ErrSchema)
		w = durable.NewWorker(durable.New(unfit{mem, durable.ErrUnsafe}, quiet))
		require.ErrorIs(t, w.Run(ctx), durable.ErrUnsafe)
		w = durable.NewWorker(durable.New(unfit{mem, durable.ErrUnsafe}, quiet), durable.WithUnsafe())
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, w.Run(ended))
		require.NoError(t, mem.Close())
		w = durable.NewWorker(durable.New(mem, quiet))
		require.ErrorIs(t, w.Run(ctx), store.ErrClosed)
	})
}

// A handler that ignores its context does not delay Shutdown for long.
func TestShutdown_OfAHandlerThatDoesNotHeed(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds, ended := make(deliveries, 1), make(chan struct{})
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			defer close(ended)
			ds <- d
			time.Sleep(time.Hour)
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, w.Shutdown(short), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(begin), time.Second+500*time.Millisecond)
		<-done
		<-ended
	})
}

// A worker shuts down even if its store does not answer.
func TestShutdown_OfAStoreThatIsFrozen(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		c := durable.New(f, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 1)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-ctx.Done()
			return ctx.Err()
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		synctest.Wait() // otherwise a command under way would delay the signal to the handler
		f.frozen.Store(true)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, w.Shutdown(short), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(begin), time.Second+time.Second)
		require.ErrorIs(t, <-done, durable.ErrNotHandedBack)
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
	})
}

// A claim without an answer still reserves places. A worker that shuts down does not
// wait for them.
func TestShutdown_WhileAClaimHasNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		c := durable.New(mem, quiet)
		w := durable.NewWorker(durable.New(f, quiet))
		w.Handle("h", func(context.Context, durable.Delivery) error { return nil })
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		var lost atomic.Bool
		lost.Store(true)
		f.setLose(lost.Load)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		synctest.Wait() // claimed, but the worker got no answer
		becomes(t, c, "k", durable.Running)
		time.AfterFunc(3*time.Second, func() { lost.Store(false) })
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State, "the task is handed back when the answer arrives")
		require.Zero(t, info.Attempts)
		require.Zero(t, w.Stats().Running)
	})
}

// Reports may wait because an earlier report has no answer. They are sent as soon as
// the answer arrives.
func TestWorker_ReportsWhileOneHasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.WithShards(1))
		f := &faulty{Store: mem}
		c := durable.New(mem, quiet)
		w := durable.NewWorker(durable.New(f, quiet), durable.WithLease(time.Hour))
		release := map[string]chan struct{}{"first": make(chan struct{}), "second": make(chan struct{})}
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			<-release[d.Key]
			return nil
		})
		start(t, w)
		for key := range release {
			schedule(t, c, durable.Task{Key: key}, durable.After(0))
		}
		synctest.Wait()
		var lost atomic.Bool
		lost.Store(true)
		f.setLose(lost.Load)
		close(release["first"])
		synctest.Wait()
		close(release["second"])
		synctest.Wait()
		lost.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Done)
	})
}

// Shutdown cancels the handlers of a loop, even if the loop waits for its store until
// the end of Run.
func TestShutdown_CancelsWhatALoopRunsThatWaitsForItsStore(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		w := durable.NewWorker(durable.New(f, quiet))
		begun, causes := make(chan struct{}), make(chan error, 1)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			close(begun)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		<-begun
		synctest.Wait()
		f.frozen.Store(true)
		other := "l" // in the same shard
		for i := 0; store.ShardOf(other, mem.Shards()) != store.ShardOf("k", mem.Shards()); i++ {
			other = fmt.Sprint("l", i)
		}
		schedule(t, c, durable.Task{Key: other}, durable.After(0))
		synctest.Wait() // the loop has sent a claim for the task
		w.Close()
		require.ErrorIs(t, <-done, durable.ErrNotHandedBack)
		require.ErrorIs(t, <-causes, durable.ErrClosed)
	})
}

// A worker whose store is closed ends with an error, and logs it once.
func TestRun_EndsWithAStoreThatWasClosed(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 1)
		causes := make(chan error, 1)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		begin := time.Now()
		require.NoError(t, mem.Close())
		_, err := c.Schedule(ctx, durable.Task{Key: "l", Handler: "h"}, durable.After(0))
		require.ErrorIs(t, err, store.ErrClosed)
		require.ErrorIs(t, err, durable.ErrNotDone)
		require.ErrorIs(t, <-causes, durable.ErrClosed)
		err = <-done
		require.ErrorIs(t, err, store.ErrClosed)
		require.ErrorIs(t, err, durable.ErrNotHandedBack)
		require.Less(t, time.Since(begin), time.Second)
		require.NoError(t, w.Shutdown(ctx))
	})
}

// A store fails permanently, for example because of its disk. It returns an error when
// it is used next.
func TestRun_EndsWithAStoreThatCannotGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &broken{Store: mem}
		c := durable.New(f, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 1)
		w.Handle("h", ds.handle)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		synctest.Wait()
		f.is.Store(true)
		schedule(t, c, durable.Task{Key: "l"}, durable.After(0))
		err := <-done
		require.ErrorIs(t, err, store.ErrUnfit)
		require.NotErrorIs(t, err, durable.ErrNotHandedBack)
	})
}

// broken is a store that refuses every round.
type broken struct {
	store.Store
	is atomic.Bool
}

func (b *broken) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	if b.is.Load() {
		return store.Answer{}, fmt.Errorf("the disk has failed: %w: %w", store.ErrUnfit, store.ErrNotDone)
	}
	return b.Store.Do(ctx, shard, s, r)
}

// stalled is a store that stops for a while. Then it carries out all commands that have
// arrived meanwhile, in order, even if their senders no longer wait.
type stalled struct {
	store.Store
	mu    sync.Mutex
	is    bool
	queue []func()
}

func (st *stalled) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	type result struct {
		a   store.Answer
		err error
	}
	done := make(chan result, 1)
	do := func() {
		a, err := st.Store.Do(context.Background(), shard, s, r)
		done <- result{a, err}
	}
	st.mu.Lock()
	if st.is {
		st.queue = append(st.queue, do)
	} else {
		do()
	}
	st.mu.Unlock()
	select {
	case x := <-done:
		return x.a, x.err
	case <-ctx.Done():
		return store.Answer{}, ctx.Err()
	}
}

func (st *stalled) goOn() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, do := range st.queue {
		do()
	}
	st.is, st.queue = false, nil
}

// A stalled store carries out a claim late. Reports on attempts that ended in time
// arrive after it. The claim must not make these attempts count as crashed.
func TestWorker_AfterAStallReportsBeforeItClaims(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		st := &stalled{Store: mem}
		c := durable.New(st, quiet)
		const lease = 6 * time.Second
		w := durable.NewWorker(c, durable.WithLease(lease))
		var runs [2]atomic.Int32
		w.Handle("first", func(context.Context, durable.Delivery) error {
			runs[0].Add(1)
			time.Sleep(lease / 2)
			return nil
		})
		w.Handle("second", func(context.Context, durable.Delivery) error {
			runs[1].Add(1)
			return nil
		})
		start(t, w)
		_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "first"}, durable.After(0))
		require.NoError(t, err)
		second := "l" // in the same shard
		for i := 0; store.ShardOf(second, mem.Shards()) != store.ShardOf("k", mem.Shards()); i++ {
			second = fmt.Sprint("l", i)
		}
		_, err = c.Schedule(ctx, durable.Task{Key: second, Handler: "second"}, durable.After(lease/6))
		require.NoError(t, err)
		time.Sleep(lease / 12)
		st.mu.Lock()
		st.is = true
		st.mu.Unlock()
		time.Sleep(2 * lease)
		st.goOn()
		gone(t, c, "k")
		gone(t, c, second)
		require.EqualValues(t, 1, runs[0].Load())
		require.EqualValues(t, 1, runs[1].Load())
		require.Zero(t, w.Stats().Lost)
	})
}

// watched counts the rounds that report an attempt for an immediate retry, and how many
// of these do not claim the task again.
type watched struct {
	store.Store
	retries, alone atomic.Int64
}

func (w *watched) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	for i := range r.Reports {
		if r.Reports[i].End == store.Retry {
			w.retries.Add(1)
			if r.Claim.Max == 0 {
				w.alone.Add(1)
			}
			break
		}
	}
	return w.Store.Do(ctx, shard, s, r)
}

// If a task is retried without delay, the round that reports the attempt also claims
// the task. So the task gets its place again.
func TestWorker_ClaimsWithTheReportOfAnAttemptToRepeatAtOnce(t *testing.T) {
	for _, places := range []int{1, 10} {
		bubble(t, func(t *testing.T, mem *memstore.Store) {
			st := &watched{Store: mem}
			c := durable.New(st, quiet)
			w := durable.NewWorker(c, durable.WithConcurrency(places))
			const attempts = 100
			w.Handle("h", func(context.Context, durable.Delivery) error { return errors.New("no") },
				durable.WithBackoff(0, 0), durable.WithMaxAttempts(attempts))
			start(t, w)
			time.Sleep(time.Second) // until no other shard's claim has the place
			schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
			for w.Stats().Died == 0 {
				time.Sleep(time.Millisecond)
			}
			require.EqualValues(t, attempts-1, st.retries.Load())
			require.Zero(t, st.alone.Load())
		})
	}
}

// patient is a store that delays each round, like a store that sends several rounds
// together.
type patient struct {
	store.Store
	withReports atomic.Int64
}

func (p *patient) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	time.Sleep(4 * time.Millisecond)
	if r.More != nil {
		r.More(&r)
	}
	if len(r.Reports) > 0 {
		p.withReports.Add(1)
	}
	return p.Store.Do(ctx, shard, s, r)
}

// A delayed round includes the reports that arrive during the delay.
func TestWorker_ReportsWithARoundThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		st := &patient{Store: mem}
		c := durable.New(st, quiet)
		w := durable.NewWorker(c)
		const attempts = 50
		w.Handle("h", func(context.Context, durable.Delivery) error { return errors.New("no") },
			durable.WithBackoff(0, 0), durable.WithMaxAttempts(attempts))
		start(t, w)
		tasks := 0
		for i := range 200 {
			key := fmt.Sprint(i)
			if store.ShardOf(key, mem.Shards()) == 0 {
				schedule(t, c, durable.Task{Key: key}, durable.At(time.Now().Add(time.Second).Truncate(time.Second)))
				tasks++
			}
		}
		require.Greater(t, tasks, 5)
		time.Sleep(time.Minute)
		require.EqualValues(t, tasks, w.Stats().Died)
		require.LessOrEqual(t, st.withReports.Load(), int64(attempts+1))
	})
}

func TestClose_HandsBackWithoutWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		causes := make(chan error, 1)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			w.Close() // from inside a handler
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		require.ErrorIs(t, <-causes, durable.ErrClosed)
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
		w.Close()
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State)
		require.Zero(t, info.Attempts)
	})
}

// A worker that lacks a task's handler or schedule leaves the task to the worker that
// has it. That uses no attempt, and does not delay other tasks.
func TestWorker_LeavesWhatItDoesNotKnowToOthers(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("hourly", &times{n: 1, step: 2 * time.Hour}))
		const n = 300
		ds := make(deliveries, 2*n)
		for range 2 {
			w := durable.NewWorker(durable.New(mem, quiet), durable.WithMaxAttempts(1))
			w.Handle("old", ds.handle)
			start(t, w)
		}
		for k := range n {
			schedule(t, c, durable.Task{Key: fmt.Sprint("k", k), Handler: "new", MaxAttempts: 1}, durable.After(0))
		}
		schedule(t, c, durable.Task{Key: "schedule", Handler: "old", Schedule: "hourly", MaxAttempts: 1}, durable.After(0))
		time.Sleep(time.Hour)
		schedule(t, c, durable.Task{Key: "old", Handler: "old"}, durable.After(0))
		require.Equal(t, "old", ds.next(t).Key)
		synctest.Wait()
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n+1, st.Unknown)
		require.EqualValues(t, 1, st.Claimed)
		require.Equal(t, time.Hour, st.Late)

		w := durable.NewWorker(c, durable.WithMaxAttempts(1))
		w.Handle("new", ds.handle)
		w.Handle("old", ds.handle)
		start(t, w)
		for range n + 1 {
			d := ds.next(t)
			require.Equal(t, 1, d.Attempt)
			require.Equal(t, time.Hour, time.Since(d.Due))
		}
		synctest.Wait()
		st, err = c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Unknown+st.Dead+st.Retried+st.Overdue)
		require.EqualValues(t, n+2, st.Done)
	})
}

// A worker with a virtual clock needs no bubble: it follows the clock, and extends its
// leases while the clock advances.
func TestWorker_UnderAVirtualClock(t *testing.T) {
	clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := durable.New(memstore.New(memstore.WithClock(clk)), quiet)
	w := durable.NewWorker(c)
	ds := make(deliveries, 10)
	release := make(chan struct{})
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		ds <- d
		<-release
		return nil
	}, durable.WithTimeout(1000*time.Hour))
	start(t, w)
	schedule(t, c, durable.Task{Key: "k"}, durable.After(365*24*time.Hour))
	clk.Advance(365*24*time.Hour - time.Minute) // while the worker begins
	require.Empty(t, ds)
	clk.Advance(2 * time.Minute)
	require.Equal(t, "k", ds.next(t).Key)
	// The worker keeps its lease as long as its handler runs, however much time passes.
	clk.Advance(24 * time.Hour)
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Crashed)
	require.EqualValues(t, 1, st.Running)
	close(release)
	gone(t, c, "k")
	require.Empty(t, ds)
}

// A handler's timeout follows the virtual clock.
func TestWorker_TimeoutUnderAVirtualClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := timertest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		mem := memstore.New(memstore.WithClock(clk))
		t.Cleanup(func() { require.NoError(t, mem.Close()) })
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		causes := make(chan error, 1)
		w.Handle("h", func(ctx context.Context, _ durable.Delivery) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return durable.NoRetry(ctx.Err())
		}, durable.WithTimeout(time.Hour))
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(time.Minute))
		advance := func(d time.Duration) {
			for ; d > 0; d -= 5 * time.Second { // the worker extends its lease meanwhile
				clk.Advance(5 * time.Second)
				synctest.Wait()
			}
		}
		advance(time.Minute + 55*time.Minute)
		require.Empty(t, causes)
		advance(6 * time.Minute)
		require.ErrorIs(t, <-causes, durable.ErrTimeout)
	})
}

// A worker crashes during a run with LatestMissed. The next worker continues with that
// run, not with the oldest missed one, even if the run has no attempts left.
func TestWorker_LatestMissedOfAWorkerThatIsGone(t *testing.T) {
	for attempts := 1; attempts <= 2; attempts++ {
		t.Run(fmt.Sprint("attempts=", attempts), func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				f := &faulty{Store: mem}
				c := durable.New(mem, quiet)
				first, then := make(deliveries, 10), make(deliveries, 10)
				gone := durable.NewWorker(durable.New(f, quiet), durable.WithMaxAttempts(attempts))
				gone.Handle("h", func(ctx context.Context, d durable.Delivery) error {
					first <- d
					<-ctx.Done()
					return ctx.Err()
				})
				start(t, gone)
				ago := time.Now().Add(-10*time.Hour - 30*time.Minute).Truncate(time.Microsecond)
				task := durable.Task{Key: "k", Every: time.Hour, Missed: durable.LatestMissed}
				schedule(t, c, task, durable.At(ago))
				d := first.next(t)
				require.Equal(t, ago.Add(10*time.Hour), d.Due)
				f.frozen.Store(true)
				defer f.frozen.Store(false)

				w := durable.NewWorker(c, durable.WithMaxAttempts(attempts))
				w.Handle("h", then.handle)
				start(t, w)
				time.Sleep(time.Minute)
				synctest.Wait()
				if attempts > 1 {
					again := then.next(t)
					require.Equal(t, 2, again.Attempt)
					require.Equal(t, d.Due, again.Due)
					require.Equal(t, d.IdempotencyKey(), again.IdempotencyKey())
				} else {
					dead := 0
					for x, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
						require.NoError(t, err)
						require.Equal(t, d.Due, x.Due)
						dead++
					}
					require.Equal(t, 1, dead)
				}
				require.Empty(t, then, "one run for all missed runs")
				require.Equal(t, ago.Add(11*time.Hour), becomes(t, c, "k", durable.Pending).At)
			})
		})
	}
}

// moreStore is a store that delays a round. When it gets a claim for no tasks, it calls
// free, which frees a place. Then it adds the reports that were queued meanwhile.
type moreStore struct {
	*memstore.Store
	free func()
	once sync.Once
}

func (s *moreStore) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if r.Claim.Asked && r.Claim.Max == 0 && r.More != nil {
		s.once.Do(func() {
			s.free()
			r.More(&r)
			r.Claim.Full = false
		})
	}
	return s.Store.Do(ctx, shard, st, r)
}

// A place becomes free while a claim without a place is under way. The worker must
// claim again for that place.
func TestWorker_PlaceThatIsFreedDuringAClaimWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		st := &moreStore{Store: memstore.New(memstore.WithShards(1))}
		c := durable.New(st, quiet)
		w := durable.NewWorker(c, durable.WithConcurrency(1))
		ran := make(chan string, 2)
		st.free = func() {
			close(release)
			time.Sleep(time.Millisecond)
			require.Len(t, ran, 1)
		}
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			<-release
			ran <- d.Key
			return nil
		})
		schedule(t, c, durable.Task{Key: "a"}, durable.After(0))
		schedule(t, c, durable.Task{Key: "b"}, durable.After(time.Second))
		start(t, w)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, ran, 2)
	})
}

// A worker is closed while a handler ignores its context and the store refuses each call.
// It sleeps between its tries: in a bubble, time would stand still otherwise.
func TestClose_WhileTheStoreRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		var cut atomic.Bool
		f := &faulty{Store: mem, refuse: cut.Load}
		c := durable.New(mem, quiet)
		w := durable.NewWorker(durable.New(f, quiet))
		begun := make(chan struct{}, 2)
		w.Handle("h", func(context.Context, durable.Delivery) error {
			begun <- struct{}{}
			time.Sleep(time.Minute)
			return nil
		})
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		schedule(t, c, durable.Task{}, durable.After(0))
		receive(t, begun)
		cut.Store(true)
		schedule(t, c, durable.Task{}, durable.After(0))
		time.Sleep(2 * time.Second) // the worker pauses for up to a second between its tries
		require.NoError(t, w.Close())
		require.ErrorIs(t, <-ended, durable.ErrNotHandedBack)
		time.Sleep(time.Minute)
	})
}

// panicky is a store whose next calls panic.
type panicky struct {
	store.Store
	rounds, waits, changes atomic.Int32 // how many calls panic
}

func panicWhile(left *atomic.Int32) {
	if left.Add(-1) >= 0 {
		panic("a bug of the store")
	}
}

func (s *panicky) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	panicWhile(&s.rounds)
	return s.Store.Do(ctx, shard, st, r)
}

func (s *panicky) Wait(ctx context.Context, shards []int, wake func(int)) error {
	panicWhile(&s.waits)
	return s.Store.Wait(ctx, shards, wake)
}

func (s *panicky) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	panicWhile(&s.changes)
	return s.Store.Change(ctx, shard, st, c)
}

// A panic of a store is the error of the command, and ends neither the process nor the worker.
func TestWorker_OfAStoreThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		st := &panicky{Store: mem}
		st.rounds.Store(9)
		st.waits.Store(2)
		st.changes.Store(2)
		c := durable.New(st, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		w.Handle("h", ds.handle)
		start(t, w)
		items := make([]durable.Item, 1000) // of all shards, so that several goroutines send commands
		for i := range items {
			items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint(i), Handler: "h"}, When: durable.After(time.Hour)}
		}
		_, err := c.ScheduleBatch(ctx, items)
		require.ErrorContains(t, err, "a bug of the store")
		st.changes.Store(0)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		require.Equal(t, "k", ds.next(t).Key)
		st.rounds.Store(4)
		gone(t, c, "k")
	})
}

// A worker ends within 25 s by default, however it is asked: orchestrators kill it after 30.
// What has not ended is handed back before that, which is not a crash, and says why.
func TestShutdown_ByDefault(t *testing.T) {
	for name, shutDown := range map[string]func(w *durable.Worker, cancel func()){
		"context":  func(_ *durable.Worker, cancel func()) { cancel() },
		"Shutdown": func(w *durable.Worker, _ func()) { _ = w.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				ds := make(deliveries, 1)
				run := func() (w *durable.Worker, cancel func(), ended chan error) {
					w = durable.NewWorker(c, durable.WithBackoff(0, 0))
					w.Handle("h", func(_ context.Context, d durable.Delivery) error {
						ds <- d
						time.Sleep(time.Hour)
						return nil
					})
					running, cancel := context.WithCancel(ctx)
					ended = make(chan error, 1)
					go func() { ended <- w.Run(running) }()
					return w, cancel, ended
				}
				schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
				for n := 1; n <= 3; n++ {
					w, cancel, ended := run()
					ds.next(t)
					begin := time.Now()
					shutDown(w, cancel)
					require.NoError(t, <-ended)
					cancel()
					took := time.Since(begin)
					require.LessOrEqual(t, took, 25*time.Second)
					require.Greater(t, took, 20*time.Second, "handlers get most of the time")
					info, err := c.Get(ctx, "k")
					require.NoError(t, err)
					require.Equal(t, durable.Pending, info.State)
					require.Zero(t, info.Attempts+info.Crashes)
					require.Len(t, info.Failures, 1)
					require.Equal(t, n, info.Failures[0].HandBacks)
					require.Equal(t, "the worker shut down", info.Failures[0].Error)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// A handler also runs the tasks that were scheduled under its former names.
func TestHandle_FormerNames(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 3)
		w.Handle("send mail", ds.handle, durable.WithFormerNames("mail", "post"))
		require.Panics(t, func() { w.Handle("post", ds.handle) })
		require.Panics(t, func() { w.Handle("x", ds.handle, durable.WithFormerNames("x")) })
		require.Panics(t, func() { w.Handle("y", ds.handle, durable.WithFormerNames("")) })
		start(t, w)
		for _, name := range []string{"send mail", "mail", "post"} {
			schedule(t, c, durable.Task{Handler: name}, durable.After(0))
			require.Equal(t, name, ds.next(t).Handler)
		}
	})
}

// Handlers that hang are logged once each, with their stacks, and counted. After another
// timeout others run in their places, but not more of the same handler than its limit.
func TestWorker_HandlersThatHang(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		var log bytes.Buffer
		c := durable.New(mem, durable.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		w := durable.NewWorker(c, durable.WithConcurrency(2), durable.WithMaxCrashes(1))
		release, returned := make(chan struct{}), make(chan struct{}, 2)
		w.Handle("hangs", func(context.Context, durable.Delivery) error {
			<-release
			returned <- struct{}{}
			return nil
		}, durable.WithTimeout(time.Minute), durable.WithHandlerConcurrency(2))
		var quick load
		w.Handle("quick", quick.handler(0))
		start(t, w)
		scheduleMany(t, c, "hangs", 3, durable.After(0))
		time.Sleep(time.Second)
		scheduleMany(t, c, "quick", 1, durable.After(0))

		time.Sleep(time.Minute - time.Second)
		require.Zero(t, w.Stats().Hanging, "the timeout is just over")
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, 2, w.Stats().Hanging)
		require.Zero(t, quick.started())
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, quick.started(), "its places are given again")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, 2, strings.Count(log.String(), "does not return after its timeout"))
		require.Equal(t, 2, strings.Count(log.String(), "TestWorker_HandlersThatHang.func"), "the stacks")
		require.Equal(t, 2, w.Stats().Running)

		close(release)
		<-returned
		<-returned
		scheduleMany(t, c, "quick", 2, durable.After(0))
		time.Sleep(time.Minute)
		require.Equal(t, durable.WorkerStats{}.Hanging, w.Stats().Hanging)
		require.Zero(t, w.Stats().Running)
	})
}

// A store that does not answer the first check, such as one behind a connection that has
// died silently, is asked again.
func TestRun_OfAStoreThatIsFrozenAtFirst(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		f.frozen.Store(true)
		c := durable.New(mem, quiet)
		w := durable.NewWorker(durable.New(f, quiet))
		ds := make(deliveries, 1)
		w.Handle("h", ds.handle)
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		synctest.Wait() // Run waits for the answer to its check
		f.frozen.Store(false)
		require.Equal(t, "k", ds.next(t).Key)
	})
}

// A worker without a free place still notices that another worker has died.
func TestWorker_FullReturnsExpiredLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "interrupted", Handler: "other"}, durable.After(0))
		a, err := mem.Do(ctx, 0, store.Stamp{Sender: "dead", Number: 1},
			store.Round{Lease: 20 * time.Second, MaxCrashes: 5, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"other"}}})
		require.NoError(t, err)
		require.Len(t, a.Tasks, 1)
		for range 3 {
			schedule(t, c, durable.Task{}, durable.After(0))
		}
		w := durable.NewWorker(c, durable.WithConcurrency(1), durable.WithLease(10*time.Second))
		w.Handle("h", func(ctx context.Context, _ durable.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}, durable.WithTimeout(time.Hour))
		start(t, w)
		time.Sleep(40 * time.Second)
		info, err := c.Get(ctx, "interrupted")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State)
		require.Equal(t, 1, info.Crashes)
		require.Less(t, w.Stats().Claims, int64(10), "a full worker claims seldom")
	})
}

// refuser is a store that refuses some claims for ever.
type refuser struct {
	store.Store
	claims atomic.Int32 // how many
}

func (s *refuser) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if r.Claim.Asked && s.claims.Add(-1) >= 0 {
		return store.Answer{}, store.ErrInvalid
	}
	return s.Store.Do(ctx, shard, st, r)
}

// After a claim that the store refuses for ever, a worker claims again without being woken.
func TestWorker_ClaimsAgainAfterOneThatIsInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{Store: memstore.New()}
		c := durable.New(r, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 1)
		w.Handle("h", ds.handle)
		start(t, w)
		time.Sleep(time.Minute) // nothing is due, so the worker waits to be woken
		r.claims.Store(3)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		require.Equal(t, "k", ds.next(t).Key)
	})
}
