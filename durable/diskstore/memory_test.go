package diskstore

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

// records returns how many of the shard's tasks have their record in memory.
func records(t *testing.T, s *Store) (n int) {
	sh := s.shards[0]
	require.NoError(t, sh.call(t.Context(), &call{look: func() {
		for _, x := range sh.tasks {
			if x.whole || x.Record != nil || x.Failures != nil {
				n++
			}
		}
	}}))
	return n
}

// Tasks that are asked for and left as they are do not keep their records in memory: those
// in the window, and those that run.
func TestMemory_TasksThatAreLeftAsTheyAre(t *testing.T) {
	s, err := Open("store", WithShards(1), option(func(c *config) { c.fs = vfs.NewMem() }), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		WithClock(timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	x := &crowd{t: t, s: s}
	x.schedule(10, "runs", store.After(0))
	x.schedule(10, "waits", store.After(time.Second))
	a, err := s.Do(t.Context(), 0, x.stamp(), store.Round{Lease: time.Minute, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 10, Handlers: []string{"h"}}})
	require.NoError(t, err)
	require.Len(t, a.Tasks, 10)
	require.Zero(t, records(t, s))

	ask := func(want store.Outcome, op store.Op, keep store.Keep, after time.Duration, kinds ...string) {
		t.Helper()
		c := store.Command{Op: op, Keep: keep}
		for _, kind := range kinds {
			for i := range 10 {
				id := fmt.Sprintf("%s-%d", kind, i)
				other := store.Task{ID: id, Handler: "h", Record: []byte("other")}
				item := store.Item{ID: id}
				switch op {
				case store.Schedule:
					item.When, item.Task = store.After(after), other
				case store.Reschedule, store.Requeue:
					item.When = store.After(after)
				case store.Import:
					item.Entry = &store.Entry{Task: other, State: store.Pending, At: 1, Due: 1}
				}
				c.Items = append(c.Items, item)
			}
		}
		out, err := s.Change(t.Context(), 0, x.stamp(), c)
		require.NoError(t, err)
		for _, o := range out {
			require.Equal(t, want, o)
		}
		require.Zero(t, records(t, s))
	}
	ask(store.Kept, store.Schedule, store.KeepAny, 0, "runs", "waits")
	ask(store.Kept, store.Schedule, store.KeepEarlier, time.Hour, "waits")
	ask(store.Kept, store.Schedule, store.KeepLater, 0, "waits")
	ask(store.Kept, store.Import, 0, 0, "runs", "waits")
	ask(store.Absent, store.Requeue, 0, 0, "runs", "waits")
	ask(store.Absent, store.Purge, 0, 0, "runs", "waits")

	// They are read again when they are needed.
	e, err := s.Get(t.Context(), 0, "waits-3")
	require.NoError(t, err)
	require.Equal(t, make([]byte, 256), e.Record)
	ask(store.Moved, store.Reschedule, 0, 0, "waits")
	require.Equal(t, 10, x.finish())
}
