package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// insist repeats a command until its outcome is known.
func insist(t *testing.T, out []durable.Outcome, err error) []durable.Outcome {
	t.Helper()
	for {
		var unknown *durable.UnknownError
		if !errors.As(err, &unknown) {
			require.NoError(t, err)
			return out
		}
		require.ErrorIs(t, err, durable.ErrUnknown)
		require.ErrorIs(t, err, errFault)
		out, err = unknown.Again(ctx)
	}
}

// Half of the answers are lost, and a quarter of the commands do not arrive.
func TestOnce_AnswersAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(&faulty{Store: mem, lose: ratio(1, 2), refuse: ratio(1, 4)}, quiet)
		want := func(want durable.Outcome, f func() (durable.Outcome, error)) {
			t.Helper()
			out, err := f()
			require.Equal(t, []durable.Outcome{want}, insist(t, []durable.Outcome{out}, err))
		}
		for i := range 100 {
			x := durable.Task{Key: fmt.Sprint(i), Handler: "h"}
			want(durable.Created, func() (durable.Outcome, error) { return c.Schedule(ctx, x, durable.After(time.Hour)) })
			want(durable.Moved, func() (durable.Outcome, error) { return c.Reschedule(ctx, x.Key, durable.After(time.Minute)) })
			want(durable.Kept, func() (durable.Outcome, error) {
				return c.Schedule(ctx, x, durable.After(time.Hour), durable.OnlyNew())
			})
			want(durable.Replaced, func() (durable.Outcome, error) { return c.Schedule(ctx, x, durable.After(time.Hour)) })
			if i%2 == 0 {
				want(durable.Removed, func() (durable.Outcome, error) { return c.Cancel(ctx, x.Key) })
				want(durable.Absent, func() (durable.Outcome, error) { return c.Cancel(ctx, x.Key) })
			}
		}
		var items []durable.Item
		for i := range 1500 {
			items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint(i), Handler: "h"}, When: durable.After(time.Hour)})
		}
		out, err := c.ScheduleBatch(ctx, items)
		for i, o := range insist(t, out, err) {
			require.Equal(t, i < 100 && i%2 == 1, o == durable.Replaced, "%d: %v", i, o)
		}
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1500, st.Pending)
		require.EqualValues(t, 50, st.Cancelled)
	})
}

// A worker that loses answers still runs every task once.
func TestOnce_AWorkerLosesAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		w := durable.NewWorker(durable.New(&faulty{Store: mem, lose: ratio(1, 2), refuse: ratio(1, 4)}, quiet))
		var runs atomic.Int64
		w.Handle("h", func(context.Context, durable.Delivery) error {
			runs.Add(1)
			time.Sleep(time.Second)
			return nil
		})
		start(t, w)
		c := durable.New(mem, quiet)
		const n = 1000
		for i := range n {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(time.Duration(i)*time.Millisecond))
		}
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Done == n
		}, time.Hour, time.Second)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n, runs.Load())
		require.EqualValues(t, n, st.Claimed)
		require.Zero(t, st.Pending+st.Running+st.Crashed+st.Refused)
		require.NotZero(t, w.Stats().Errors)
		require.Eventually(t, func() bool { return w.Stats().Done == n }, soon, time.Second)
	})
}

// If this package has not made an UnknownError, its Again returns the error itself.
func TestAgain_OfAnErrorThatIsMadeByHand(t *testing.T) {
	e := &durable.UnknownError{}
	_, err := e.Again(ctx)
	require.Equal(t, e, err)
	require.EqualError(t, e, "durable: unknown whether the command was carried out: (no error)")
}

// A call returns when its context ends. If the context has a deadline, the command is
// not carried out after it.
func TestOnce_TheContextEndsTheCall(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		c := durable.New(f, quiet)
		x := durable.Task{Key: "k", Handler: "h"}

		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := c.Schedule(ended, x, durable.After(0))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, durable.ErrNotDone)

		f.frozen.Store(true)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		_, err = c.Schedule(short, x, durable.After(0))
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var unknown *durable.UnknownError
		require.ErrorAs(t, err, &unknown)
		// Again with a context that has ended returns another UnknownError.
		_, err = unknown.Again(short)
		require.ErrorAs(t, err, &unknown)
		f.frozen.Store(false)
		_, err = unknown.Again(ended)
		require.ErrorAs(t, err, &unknown)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, durable.ErrNotDone)
		time.Sleep(time.Millisecond)
		_, err = unknown.Again(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, durable.ErrNotDone)
		_, err = c.Get(ctx, "k")
		require.ErrorIs(t, err, durable.ErrNotFound)

		// If the context had no deadline, Again carries out the command.
		f.frozen.Store(true)
		given, giveUp := context.WithCancel(ctx)
		time.AfterFunc(time.Second, giveUp)
		_, err = c.Schedule(given, x, durable.After(0))
		require.ErrorAs(t, err, &unknown)
		f.frozen.Store(false)
		out, err := unknown.Again(ctx)
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Created}, out)
	})
}

// Again waits for another goroutine's Again only until its own context ends.
func TestAgain_WhileAnotherGoroutineCallsIt(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem, lose: ratio(1, 1)}
		_, err := durable.New(f, quiet).Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(0))
		var unknown *durable.UnknownError
		require.ErrorAs(t, err, &unknown)
		f.frozen.Store(true)
		long, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		go func() { _, _ = unknown.Again(long) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		out, err := unknown.Again(short)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, []durable.Outcome{durable.Unknown}, out)
		require.ErrorAs(t, err, &unknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		f.frozen.Store(false)
		f.lose = nil
		time.Sleep(time.Hour)
		out, err = unknown.Again(ctx)
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Created}, out)
	})
}

// turningAway is a store that carries out one command but loses its answer. It refuses
// every later command.
type turningAway struct {
	store.Store
	why   error
	calls int
}

func (s *turningAway) Change(ctx context.Context, shard int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if s.calls++; s.calls > 1 {
		return nil, fmt.Errorf("%w: refused", s.why)
	}
	_, _ = s.Store.Change(ctx, shard, st, c)
	return nil, errFault
}

// If the store refuses a repeated command, the effect of the first one is still
// unknown. So the error of Again must not match ErrNotDone.
func TestAgain_ThatIsRefusedDoesNotSayNotDone(t *testing.T) {
	for _, why := range []error{store.ErrBusy, store.ErrFull, store.ErrClosed} {
		bubble(t, func(t *testing.T, mem *memstore.Store) {
			c := durable.New(&turningAway{Store: mem, why: why}, quiet)
			_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour))
			var unknown *durable.UnknownError
			require.ErrorAs(t, err, &unknown)
			for range 2 {
				_, err = unknown.Again(ctx)
				require.ErrorAs(t, err, &unknown)
				require.ErrorIs(t, err, durable.ErrUnknown)
				for _, nothing := range []error{durable.ErrNotDone, durable.ErrBusy, durable.ErrFull} {
					require.NotErrorIs(t, err, nothing)
				}
				require.ErrorContains(t, err, why.Error()+": refused")
				require.Equal(t, why == store.ErrClosed, errors.Is(err, store.ErrClosed))
			}
			_, err = c.Get(ctx, "k")
			require.NoError(t, err)
		})
	}
}

// halved is a store in which half of the shards can be frozen.
type halved struct {
	store.Store
	frozen atomic.Bool
}

func (h *halved) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	if shard%2 == 1 && h.frozen.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Change(ctx, shard, s, c)
}

// One part of a batch was carried out before the deadline, another was not. The
// outcomes show which.
func TestAgain_OfABatchThatWasDoneInPart(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		h := &halved{Store: mem}
		c := durable.New(h, quiet)
		var items []durable.Item
		for i := range 100 {
			items = append(items, durable.Item{Task: durable.Task{Key: strconv.Itoa(i), Handler: "h"}, When: durable.After(time.Hour)})
		}
		h.frozen.Store(true)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := c.ScheduleBatch(short, items)
		var unknown *durable.UnknownError
		require.ErrorAs(t, err, &unknown)
		h.frozen.Store(false)
		time.Sleep(time.Millisecond)
		for range 2 {
			out, err := unknown.Again(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, durable.ErrUnknown)
			count := map[durable.Outcome]int{}
			for i, x := range items {
				count[out[i]]++
				_, err := c.Get(ctx, x.Task.Key)
				if out[i] == durable.Created {
					require.NoError(t, err)
				} else {
					require.Equal(t, durable.Unknown, out[i])
					require.ErrorIs(t, err, durable.ErrNotFound)
				}
			}
			require.Len(t, count, 2)
		}
	})
}

// Pause and Resume have no tasks. So Again returns no outcomes for them.
func TestAgain_OfPauseHasNoOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		f := &faulty{Store: mem}
		c := durable.New(f, quiet)
		lost := true
		f.lose = func() bool { return lost }
		var unknown *durable.UnknownError
		require.ErrorAs(t, c.Pause(ctx), &unknown)
		out, err := unknown.Again(ctx)
		require.ErrorAs(t, err, &unknown)
		require.Empty(t, out)
		lost = false
		for range 2 {
			out, err = unknown.Again(ctx)
			require.NoError(t, err)
			require.Empty(t, out)
		}
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, mem.Shards(), st.Paused)
	})
}

// noTime is a store whose Now fails.
type noTime struct{ store.Store }

func (noTime) Now(context.Context, int) (store.Time, error) { return 0, errFault }

// A command with a deadline first reads the store's time. If that fails, the command
// certainly has no effect.
func TestOnce_TheTimeIsNotToBeHad(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(noTime{mem}, quiet)
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := c.Cancel(ctx, "k")
		require.ErrorIs(t, err, errFault)
		require.ErrorIs(t, err, durable.ErrNotDone)
		require.NotErrorIs(t, err, durable.ErrUnknown)
		_, err = c.ScheduleBatch(ctx, []durable.Item{{Task: durable.Task{Key: "k", Handler: "h"}, When: durable.After(time.Hour)}})
		require.ErrorIs(t, err, durable.ErrNotDone)
	})
}
