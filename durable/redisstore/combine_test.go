package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// A key is imported and scheduled at the same time. The result is the new task or the
// imported task, but never a mixture.
func TestChange_ScheduleAndImportOfOneKeyTogether(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	s := New(r, WithShards(1))
	defer s.Close()
	ctx := t.Context()
	_, err := s.Now(ctx, 0)
	require.NoError(t, err)
	at := store.TimeOf(time.Now().Add(time.Hour))
	entry := &store.Entry{Task: store.Task{ID: "k", Handler: "h"}, State: store.Pending, At: at, Due: at - 1000,
		Attempts: 3, Crashes: 2, Failures: []store.Failure{{Attempt: 3, Time: at - 500, Text: "before"}}}
	commands := []store.Command{
		{Op: store.Import, Items: []store.Item{{ID: "k", Entry: entry}}},
		{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.At(at + 1), Task: store.Task{ID: "k", Handler: "new"}}}},
		{Op: store.Schedule, Items: []store.Item{{ID: "l", When: store.At(at + 1), Task: store.Task{ID: "l", Handler: "new"}}}},
	}
	b := &s.shards[0].combiner
	b.sending = true // the commands wait for one batch
	outcomes := make([]chan store.Outcome, len(commands))
	for i, c := range commands {
		done := make(chan store.Outcome, 1)
		outcomes[i] = done
		go func() {
			out, err := s.Change(ctx, 0, store.Stamp{Sender: string(rune('a' + i)), Number: 1}, c)
			if err != nil {
				t.Error(err)
				out = []store.Outcome{store.Unknown}
			}
			done <- out[0]
		}()
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.queue) == i+1
		}, time.Minute, time.Millisecond)
	}
	b.sendNext(ctx)
	require.Equal(t, store.Created, <-outcomes[0])
	require.Equal(t, store.Replaced, <-outcomes[1])
	require.Equal(t, store.Created, <-outcomes[2])
	e, err := s.Get(ctx, 0, "k")
	require.NoError(t, err)
	require.Equal(t, "new", e.Handler)
	require.Equal(t, at+1, e.At)
	require.Equal(t, at+1, e.Due)
	require.Zero(t, e.Attempts+e.Crashes)
	require.Empty(t, e.Failures)
}
