package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// TestRestore replaces a file whose process was killed, so that its log remains, or that was
// damaged or removed.
func TestRestore(t *testing.T) {
	for name, spoil := range map[string]func(path string){
		"crashed": func(string) {},
		"damaged": func(path string) { require.NoError(t, os.Truncate(path, 5000)) },
		"garbage": func(path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600))
		},
		"log alone": func(path string) { require.NoError(t, os.Remove(path)) },
		"missing": func(path string) {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				require.NoError(t, os.Remove(path+suffix))
			}
		},
	} {
		path, backup := newPath(t), newPath(t)
		st, err := sqlitestore.Open(path)
		require.NoError(t, err)
		keys := fill(t, st, 200)
		require.NoError(t, st.Backup(t.Context(), backup))
		require.NoError(t, st.Close())
		ready := make(chan struct{}, 1)
		child := start(t, "holds", path, func(string) { ready <- struct{}{} })
		<-ready
		err = sqlitestore.Restore(t.Context(), path, backup)
		require.ErrorIs(t, err, sqlitestore.ErrInUse, "another process has the file open")
		require.ErrorIs(t, err, store.ErrNotDone)
		require.NoError(t, child.Process.Signal(syscall.SIGKILL))
		_ = child.Wait()
		require.FileExists(t, path+"-wal")
		spoil(path)

		require.NoError(t, sqlitestore.Restore(t.Context(), path, backup), name)
		require.NoFileExists(t, path+"-wal")
		st = open(t, path)
		n, err := st.Verify(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 200, n)
		for _, key := range keys {
			_, err := st.Get(t.Context(), 0, key)
			require.NoError(t, err)
		}
		require.ErrorIs(t, sqlitestore.Restore(t.Context(), path, backup), sqlitestore.ErrInUse, "this process has the file open")
		files, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.LessOrEqual(t, len(files), 3, "%v", files)
	}
}

// holdChild opens the file, commits tasks that remain in the log, and waits.
func holdChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	for i := range 30 {
		if _, err := st.Change(context.Background(), 0, store.Stamp{Sender: fmt.Sprint("s", i), Number: 1}, store.Command{Op: store.Schedule, Items: []store.Item{
			{ID: fmt.Sprint("later", i), When: store.After(0), Task: store.Task{ID: fmt.Sprint("later", i), Handler: "h"}}}}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	time.Sleep(time.Hour) // select would be a deadlock to the runtime
	return nil
}

// Restore refuses a backup that is damaged or missing, and does not change the file.
func TestRestore_BadBackup(t *testing.T) {
	path, backup := newPath(t), newPath(t)
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	fill(t, st, 200)
	require.NoError(t, st.Backup(t.Context(), backup))
	require.NoError(t, st.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.ErrorIs(t, sqlitestore.Restore(t.Context(), path, newPath(t)), os.ErrNotExist)
	empty := newPath(t)
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.ErrorContains(t, sqlitestore.Restore(t.Context(), path, empty), "does not contain a store")
	content, err := os.ReadFile(backup)
	require.NoError(t, err)
	at := strings.Index(string(content), "key17")
	require.Positive(t, at)
	content[at] ^= 1
	require.NoError(t, os.WriteFile(backup, content, 0o600))
	require.ErrorIs(t, sqlitestore.Restore(t.Context(), path, backup), sqlitestore.ErrDamaged)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}
