//go:build unix

package sqlitestore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// TestOpen_FilesArePrivate checks that only the user can read the files that a Store creates.
func TestOpen_FilesArePrivate(t *testing.T) {
	folder := t.TempDir()
	s, err := sqlitestore.Open(filepath.Join(folder, "tasks.db"))
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 1}, store.Round{Lease: time.Hour, MaxCrashes: 1})
	require.NoError(t, err)
	require.NoError(t, s.Backup(t.Context(), filepath.Join(folder, "backup.db")))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), 3)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), e.Name())
	}
}
