package durable

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

func FuzzDecode(f *testing.F) {
	for _, t := range []Task{
		{},
		{Body: []byte("body"), Headers: map[string]string{"a": "b", "c": ""}},
		{MaxAttempts: 7, Timeout: time.Second, Every: time.Hour, Missed: DeadMissed, MissedAfter: time.Minute},
		{Missed: FireMissed},
		{Cron: "0 9 * * *", Zone: "Europe/Berlin", Start: time.Unix(1, 0), End: time.Unix(1e9, 5000)},
	} {
		x, err := encodeTask(&t, MaxTask, nil)
		require.NoError(f, err)
		f.Add(x.Record)
	}
	// Decoding a damaged record returns an error, or a task that encodes to the same
	// record.
	f.Fuzz(func(t *testing.T, record []byte) {
		x, generation, err := decodeTask(&store.Task{ID: "key", Handler: "h", Record: record})
		if err != nil {
			return
		}
		require.Equal(t, string(record[1:1+store.GenerationSize]), generation)
		again, err := encodeTask(&x, MaxTask, nil)
		if err != nil {
			return // larger than a task may be
		}
		y, _, err := decodeTask(&again)
		require.NoError(t, err)
		if len(x.Headers) == 0 {
			x.Headers = nil
		}
		if x.Missed == LatestMissed {
			x.MissedAfter = 0
		}
		require.Equal(t, x, y)
	})
}

// A store can tell from the record whether the task repeats.
func TestEncodeTask_SaysWhetherTheTaskRepeats(t *testing.T) {
	for _, x := range []Task{
		{},
		{Body: []byte("body")},
		{Headers: map[string]string{"a": "b"}, MaxAttempts: 7, Timeout: time.Second, Missed: DeadMissed, MissedAfter: time.Minute, Body: []byte("\xff")},
	} {
		is := func(want bool) {
			t.Helper()
			x.Key = "k"
			stored, err := encodeTask(&x, MaxTask, nil)
			require.NoError(t, err)
			require.Equal(t, want, stored.Repeats())
			stored.ID = store.SingleID("k", 1)
			require.False(t, stored.Repeats())
		}
		is(false)
		x.Every = time.Second
		is(true)
		x.Every, x.Schedule = 0, "s"
		is(true)
		x.Schedule, x.Cron = "", "* * * * *"
		is(true)
	}
}

func TestDelay_IsWithinItsBounds(t *testing.T) {
	c := handlerConfig{backoff: time.Second, maxBackoff: time.Minute}
	for attempt := 1; attempt < 200; attempt++ {
		limit := time.Minute
		if attempt <= 6 {
			limit = time.Second << (attempt - 1)
		}
		var most time.Duration
		for range 200 {
			d := c.retryDelay(nil, attempt, store.MaxDelay)
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, limit)
			most = max(most, d)
		}
		require.Greater(t, most, limit/2, "attempt %d", attempt)
	}
	for range 200 {
		require.LessOrEqual(t, c.retryDelay(nil, 9, 5*time.Second), 5*time.Second)
	}
	c = handlerConfig{}
	require.Zero(t, c.retryDelay(nil, 5, store.MaxDelay))
}

// A worker that cannot load a time zone leaves the task to other workers.
func TestWorker_LeavesAZoneThatItCannotLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		c := New(mem, WithLogger(slog.New(slog.DiscardHandler)))
		x, err := encodeTask(&Task{Key: "k", Handler: "h", Cron: "* * * * *", Zone: "Europe/Atlantis"}, MaxTask, nil)
		require.NoError(t, err)
		_, err = c.doOneItem(t.Context(), store.Command{Op: store.Schedule}, store.Item{ID: "k", When: store.After(0), Task: x})
		require.NoError(t, err)
		w := NewWorker(c)
		w.Handle("h", func(context.Context, Delivery) error { panic("it was run") })
		go w.Run(t.Context())
		time.Sleep(time.Hour)
		require.NoError(t, w.Shutdown(t.Context()))
		info, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, Pending, info.State)
		require.Zero(t, info.Attempts)
		require.Positive(t, w.Stats().Released)
	})
}
