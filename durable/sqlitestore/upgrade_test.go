package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
)

// copyOldFile returns a copy of a file with the tables of version 2.
func copyOldFile(t *testing.T) string { return copyFile(t, "testdata/schema2.db") }

// copyFile returns a copy of a file that testdata/generate.go made.
func copyFile(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "tasks.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestOpen_UpgradesTables(t *testing.T) {
	path := copyOldFile(t)
	_, err := sqlitestore.Open(path, sqlitestore.WithReadOnly())
	require.ErrorIs(t, err, store.ErrSchema)
	for range 2 {
		s, err := sqlitestore.Open(path)
		require.NoError(t, err)
		n, err := s.Verify(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 105, n)
		require.NoError(t, s.Close())
	}
	s, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer s.Close()
	storetest.RunUpgraded(t, s, "testdata/schema2.gob")
	_, err = s.Verify(t.Context())
	require.NoError(t, err)
}

// A file that the first program with these tables wrote works with this one.
func TestOpen_FileOfFirstRelease(t *testing.T) {
	s, err := sqlitestore.Open(copyFile(t, "testdata/schema3.db"))
	require.NoError(t, err)
	defer s.Close()
	storetest.RunUpgraded(t, s, "testdata/schema3.gob")
	_, err = s.Verify(t.Context())
	require.NoError(t, err)
}

// TestOpen_UpgradedTablesAreAsNew compares the tables and indexes of an upgraded file with
// those of a new file.
func TestOpen_UpgradedTablesAreAsNew(t *testing.T) {
	describe := func(path string) (out []string) {
		s, err := sqlitestore.Open(path)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer db.Close()
		for _, query := range []string{
			`SELECT t.name || ' ' || c.name || ' ' || c.type || ' ' || c."notnull" || c.pk FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid`,
			`SELECT name || ' ' || sql FROM sqlite_schema WHERE type != 'table' AND sql IS NOT NULL ORDER BY name`,
		} {
			rows, err := db.Query(query)
			require.NoError(t, err)
			for rows.Next() {
				var text string
				require.NoError(t, rows.Scan(&text))
				out = append(out, text)
			}
			require.NoError(t, rows.Err())
		}
		return out
	}
	require.Equal(t, describe(filepath.Join(t.TempDir(), "new.db")), describe(copyOldFile(t)))
}

// TestStore_TablesAreUpgradedMeanwhile shows what an open Store does when a later version
// of the package upgrades its file.
func TestStore_TablesAreUpgradedMeanwhile(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := sqlitestore.Open(path)
	require.NoError(t, err)
	defer s.Close()
	schedule := store.Command{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.After(0), Task: store.Task{ID: "k", Handler: "h"}}}}
	stamp := store.Stamp{Sender: "s", Number: 1}
	_, err = s.Change(ctx, 0, stamp, schedule)
	require.NoError(t, err)
	claim := store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`UPDATE tickless_numbers SET version = version + 1; ALTER TABLE tickless_tasks ADD COLUMN later TEXT`)
	require.NoError(t, err)
	for what, call := range map[string]func() error{
		"Change": func() error { stamp.Number++; _, err := s.Change(ctx, 0, stamp, schedule); return err },
		"Do":     func() error { _, err := s.Do(ctx, 0, store.Stamp{Sender: "w", Number: 1}, claim); return err },
		"Get":    func() error { _, err := s.Get(ctx, 0, "k"); return err },
		"List":   func() error { _, err := s.List(ctx, 0, store.Filter{}, store.Cursor{}, 1); return err },
		"Stats":  func() error { _, err := s.Stats(ctx, 0); return err },
		"Check":  func() error { _, err := s.Check(ctx); return err },
		"Repair": func() error { _, err := s.Repair(ctx, 0); return err },
		"Open":   func() error { _, err := sqlitestore.Open(path); return err },
	} {
		err := call()
		require.ErrorIs(t, err, store.ErrSchema, what)
		require.ErrorIs(t, err, store.ErrNotDone, what)
	}
	_, err = db.Exec(`UPDATE tickless_numbers SET version = version - 1`)
	require.NoError(t, err)
	e, err := s.Get(ctx, 0, "k")
	require.NoError(t, err)
	require.Equal(t, store.Pending, e.State, fmt.Sprint(e))
}
