package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestWorkerOptions_RefuseMisuse(t *testing.T) {
	for _, d := range []time.Duration{0, 100*time.Millisecond - 1, 24*time.Hour + 1} {
		require.Panics(t, func() { durable.WithLease(d) }, d)
	}
	require.Panics(t, func() { durable.WithBackoff(-1, 1) })
	require.Panics(t, func() { durable.WithBackoff(2, 1) })
	for _, n := range []int{0, -1, 1_000_001, math.MaxInt} {
		require.Panics(t, func() { durable.WithConcurrency(n) }, n)
		require.Panics(t, func() { durable.WithHandlerConcurrency(n) }, n)
		require.Panics(t, func() { durable.WithMaxAttempts(n) }, n)
		require.Panics(t, func() { durable.WithMaxCrashes(n) }, n)
	}
	for _, rate := range []float64{0, -1, 1e-11, 1e308, math.Inf(1), math.NaN()} {
		require.Panics(t, func() { durable.WithRate(rate) }, rate)
	}
	durable.WithRate(1e-6)
	durable.WithRate(1e6)
	durable.WithLease(100 * time.Millisecond)
	durable.WithLease(24 * time.Hour)
	durable.WithBackoff(0, 0)
	durable.WithBackoff(1, 1)
}

// A huge timeout plus a lease must not overflow into the past. Otherwise the worker
// would give up each lease instead of extending it.
func TestWithTimeout_BeyondAllBounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		w := durable.NewWorker(c, durable.WithTimeout(math.MaxInt64))
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
				t.Error(context.Cause(ctx))
			}
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		none(t, ds, 2*time.Hour)
		gone(t, c, "k")
		require.EqualValues(t, 1, w.Stats().Done)
	})
}

// A huge delay must not panic when its random part is computed.
func TestWithBackoff_BeyondAllBounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		w := durable.NewWorker(c, durable.WithBackoff(math.MaxInt64, math.MaxInt64))
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return errors.New("fails")
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		info := becomes(t, c, "k", durable.Pending)
		require.Equal(t, 1, info.Attempts)
		require.True(t, info.At.After(time.Now()))
	})
}

func TestWorkerRecentDead_KeepsTheLatest(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) })
		start(t, w)
		for i := range 20 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("k", i)}, durable.After(0))
			time.Sleep(time.Second)
		}
		dead := w.RecentDead()
		require.Len(t, dead, 16)
		for i, d := range dead {
			require.Equal(t, fmt.Sprint("k", i+4), d.Key)
		}
	})
}

// MaxTask counts names, body and headers. Each header counts 6 bytes more.
func TestSchedule_LargestTask(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for _, x := range []struct {
			headers map[string]string
			size    int
		}{{nil, 0}, {map[string]string{"a": "b"}, 2 + 6}, {map[string]string{"a": "b", "c": ""}, 3 + 2*6}} {
			task := durable.Task{Key: "key", Handler: "h", Headers: x.headers}
			task.Body = make([]byte, durable.MaxTask-len("key")-len("h")-x.size)
			schedule(t, c, task, durable.After(time.Hour))
			task.Body = append(task.Body, 0)
			_, err := c.Schedule(ctx, task, durable.After(time.Hour))
			require.ErrorIs(t, err, durable.ErrInvalid, x.headers)
			require.ErrorContains(t, err, "WithMaxTask")
		}
		const most = 256 << 10
		c = durable.New(mem, quiet, durable.WithMaxTask(most))
		task := durable.Task{Key: "key", Handler: "h", Body: make([]byte, most-len("key")-len("h"))}
		schedule(t, c, task, durable.After(time.Hour))
		task.Body = append(task.Body, 0)
		_, err := c.Schedule(ctx, task, durable.After(time.Hour))
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.Panics(t, func() { durable.WithMaxTask(most + 1) })
		require.Panics(t, func() { durable.WithMaxTask(0) })
	})
}

// Errors must not quote a key twice, if it is long or not UTF-8.
func TestErrors_QuoteKeysOnce(t *testing.T) {
	c := durable.New(memstore.New())
	long := strings.Repeat("x", durable.MaxKey)
	cut := `"` + long[:190] + `..."`
	_, err := c.Cancel(context.Background(), long+"\x00"+strings.Repeat("9", 40))
	require.ErrorContains(t, err, "the id "+cut+" is neither")
	for key, want := range map[string]string{long: cut, "k": `"k"`} {
		task := durable.Task{Key: key, Handler: "h"}
		_, err = c.Schedule(context.Background(), task, durable.After(-1))
		require.ErrorContains(t, err, "task "+want+": ")
		task.Body = make([]byte, durable.MaxTask)
		_, err = c.Schedule(context.Background(), task, durable.After(0))
		require.ErrorContains(t, err, "task "+want+" has ")
	}
}
