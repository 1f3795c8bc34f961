package sqlitestore

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

// TestWriter_Panic panics in the middle of transactions, after changes. Only the call that
// panics fails.
func TestWriter_Panic(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(filepath.Join(t.TempDir(), "tasks.db"), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer s.Close()
	schedule := func(id string) error {
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "s" + id, Number: 1}, store.Command{Op: store.Schedule, Items: []store.Item{
			{ID: id, When: store.After(0), Task: store.Task{ID: id, Handler: "h"}}}})
		return err
	}
	require.NoError(t, schedule("first"))
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if id := string(rune('a' + i)); i%5 != 0 {
				require.NoError(t, schedule(id))
				return
			}
			err := s.callWriter(context.Background(), &call{Run: func(ix *index) error {
				task := ix.Find("first")
				task.State, task.At, ix.counters.Pending = store.Dead, 1, 77
				ix.Changed(task)
				ix.flushTasks()
				panic("a test's panic")
			}})
			require.ErrorIs(t, err, store.ErrNotDone)
			require.ErrorContains(t, err, "a test's panic")
		})
	}
	calls.Wait()
	e, err := s.Get(t.Context(), 0, "first")
	require.NoError(t, err)
	require.Equal(t, store.Pending, e.State)
	n, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 17, n)
	require.Contains(t, log.String(), "panic_test.go")
}
