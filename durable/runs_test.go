package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// RunsPage lists the runs of all keys and shards, the latest first.
func TestRunsPage(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if d.Key[0] == 'x' {
				return durable.NoRetry(errors.New("no"))
			}
			return nil
		})
		start(t, w)
		begin := time.Now()
		for i := range 30 {
			keep := durable.Retention{For: time.Hour}
			if i%10 == 9 {
				keep.For = time.Minute
			}
			schedule(t, c, durable.Task{Key: fmt.Sprintf("%c%d", "ax"[i%2], i), Retention: keep}, durable.After(time.Duration(i)*time.Second))
		}
		schedule(t, c, durable.Task{Key: "not kept"}, durable.After(time.Second))
		time.Sleep(time.Minute)
		read := func(f durable.Filter, limit int) (runs []durable.Run) {
			t.Helper()
			for after := durable.Cursor(""); ; {
				p, err := c.RunsPage(ctx, f, after, limit)
				require.NoError(t, err)
				require.LessOrEqual(t, len(p.Runs), limit)
				runs = append(runs, p.Runs...)
				if after = p.Next; after == "" {
					return runs
				}
			}
		}
		for _, limit := range []int{1, 7, 100} {
			runs := read(durable.Filter{}, limit)
			require.Len(t, runs, 30)
			for i, r := range runs {
				require.Equal(t, fmt.Sprintf("%c%d", "ax"[(29-i)%2], 29-i), r.Key)
				require.Equal(t, r.Key[0] == 'a', r.Done)
			}
			require.Len(t, read(durable.Filter{Error: "no"}, limit), 15)
			require.Len(t, read(durable.Filter{From: begin.Add(10 * time.Second), To: begin.Add(20 * time.Second)}, limit), 10)
			require.Len(t, read(durable.Filter{Prefix: "x1"}, limit), 6)
			require.Empty(t, read(durable.Filter{Handler: "other"}, limit))
		}
		time.Sleep(25 * time.Second) // the retention of x9, x19 and x29 has not passed everywhere
		require.Len(t, read(durable.Filter{}, 100), 28)
		_, err := c.RunsPage(ctx, durable.Filter{State: durable.Dead}, "", 10)
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.RunsPage(ctx, durable.Filter{}, "", 0)
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}

// A time that never comes is absent.
func TestInfo_Never(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k", Every: time.Hour}, durable.After(time.Hour))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.False(t, info.At.IsZero())
		_, err = c.Reschedule(ctx, "k", durable.At(store.Farthest.Std())) // a pause of older versions
		require.NoError(t, err)
		info, err = c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Paused && info.At.IsZero(), "%+v", info)
		b, err := json.Marshal(info)
		require.NoError(t, err)
		require.NotContains(t, string(b), `"at"`)
		require.NotContains(t, string(b), "2199")
		_, err = c.ResumeTask(ctx, "k")
		require.NoError(t, err)
		info, err = c.Get(ctx, "k")
		require.NoError(t, err)
		require.False(t, info.At.IsZero())
	})
}

// Commands on all tasks of a filter need one, and change at most as many as they may.
func TestBulk(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for i := range 2500 {
			schedule(t, c, durable.Task{Key: fmt.Sprintf("k%04d", i), Handler: []string{"mail", "sms"}[i%2]}, durable.After(time.Duration(i+1)*time.Second))
		}
		for _, call := range []func(f durable.Filter) (int, error){
			func(f durable.Filter) (int, error) { return c.CancelAll(ctx, f) },
			func(f durable.Filter) (int, error) { return c.PurgeAll(ctx, f) },
			func(f durable.Filter) (int, error) { return c.RequeueAll(ctx, f, durable.After(0)) },
		} {
			_, err := call(durable.Filter{})
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		_, err := c.CancelAll(ctx, durable.Filter{State: durable.Past})
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.RequeueAll(ctx, durable.Filter{State: durable.Past}, durable.After(0))
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.PurgeAll(ctx, durable.Filter{State: durable.Pending})
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = c.CancelAll(ctx, durable.Filter{State: durable.Dead})
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.Panics(t, func() { durable.AtMost(0) })
		require.Panics(t, func() { durable.Progress(nil) })

		n, err := c.CancelAll(ctx, durable.Filter{Handler: "mail"}, durable.AtMost(7))
		require.NoError(t, err)
		require.Equal(t, 7, n)
		due := time.Now().Add(101 * time.Second)
		n, err = c.CancelAll(ctx, durable.Filter{Handler: "sms", DueTo: due})
		require.NoError(t, err)
		require.Equal(t, 50, n)
		var steps []int
		n, err = c.CancelAll(ctx, durable.Filter{State: durable.Pending}, durable.Progress(func(n int) { steps = append(steps, n) }))
		require.NoError(t, err)
		require.Equal(t, 2500-57, n)
		require.Equal(t, []int{1000, 2000, 2443}, steps)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Pending)
	})
}
