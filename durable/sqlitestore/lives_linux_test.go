package sqlitestore_test

import (
	"database/sql"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

// A worker that was killed no longer counts as one that has its handler. Only Linux tells
// when a process began.
func TestStats_UnknownAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	ran := make(chan string, 1)
	cmd := start(t, "worker", path, func(line string) { ran <- line })
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer st.Close()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer db.Close()
	c := durable.New(st)
	schedule := func(key string) {
		t.Helper()
		_, err := c.Schedule(t.Context(), durable.Task{Key: key, Handler: "h", Body: []byte(time.Now().Format(time.RFC3339Nano))}, durable.After(0))
		require.NoError(t, err)
	}
	unknown := func() int64 {
		t.Helper()
		stats, err := c.Stats(t.Context())
		require.NoError(t, err)
		return stats.Unknown
	}
	schedule("a")
	<-ran
	// Stop the worker, so that it lives but claims nothing. Hold the file's lock meanwhile: a
	// process that is stopped in a transaction keeps the lock, and "b" would wait for it.
	lock, err := db.Begin()
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	_, err = syscall.Wait4(cmd.Process.Pid, nil, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.NoError(t, lock.Rollback())
	schedule("b")
	require.Zero(t, unknown())
	isLost := func() bool {
		t.Helper()
		workers, err := c.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, workers, 1)
		require.Equal(t, cmd.Process.Pid, workers[0].PID)
		return workers[0].Lost
	}
	require.False(t, isLost())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.EqualValues(t, 1, unknown())
	require.True(t, isLost())
	x, err := c.Explain(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, durable.ReasonNoWorker, x.Reasons[0].Kind)
}
