package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
)

// Commands on a damaged task say so, and change nothing.
func TestDamagedRow_Commands(t *testing.T) {
	ctx := t.Context()
	path := newPath(t)
	st := open(t, path)
	c := durable.New(st)
	for _, key := range []string{"damaged", "sound"} {
		_, err := c.Schedule(ctx, durable.Task{Key: key, Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
	}
	_, err := application(t, path, "").Exec(`UPDATE tickless_tasks SET attempts = 7 WHERE id = 'damaged'`)
	require.NoError(t, err)
	for what, call := range map[string]func() error{
		"get":        func() error { _, err := c.Get(ctx, "damaged"); return err },
		"cancel":     func() error { _, err := c.Cancel(ctx, "damaged"); return err },
		"reschedule": func() error { _, err := c.Reschedule(ctx, "damaged", durable.After(0)); return err },
		"requeue":    func() error { _, err := c.Requeue(ctx, "damaged", durable.After(0)); return err },
		"purge":      func() error { _, err := c.Purge(ctx, "damaged"); return err },
		"batch":      func() error { _, err := c.CancelBatch(ctx, []string{"sound", "damaged"}); return err },
	} {
		err := call()
		require.ErrorIs(t, err, store.ErrDamaged, what)
		require.ErrorIs(t, err, store.ErrNotDone, what)
	}
	n, err := durable.Export(ctx, io.Discard, st)
	require.ErrorIs(t, err, store.ErrDamaged)
	require.ErrorContains(t, err, `"damaged"`)
	require.Equal(t, 1, n)
	to := memstore.New()
	copied, err := durable.Copy(ctx, to, st)
	require.ErrorIs(t, err, store.ErrDamaged)
	require.Equal(t, durable.Copied{Added: 1}, copied)
	var listed []string
	for info, err := range c.List(ctx, durable.Filter{}) {
		require.Equal(t, info.ID == "damaged", err != nil, info.ID)
		listed = append(listed, info.ID)
	}
	require.ElementsMatch(t, []string{"damaged", "sound"}, listed)
	_, err = c.Schedule(ctx, durable.Task{Key: "damaged", Handler: "h"}, durable.After(time.Hour))
	require.NoError(t, err)
	out, err := c.CancelBatch(ctx, []string{"sound", "damaged"})
	require.NoError(t, err)
	require.Equal(t, []durable.Outcome{durable.Removed, durable.Removed}, out)
}

// Damage in each column of the small tables is found by Verify and Check, and corrected by
// Repair. Only a command that needs the row fails.
func TestDamagedSmallRow(t *testing.T) {
	ctx := t.Context()
	for _, damage := range []string{
		`UPDATE tickless_senders SET seen = seen + 1 WHERE name = 'w'`, `UPDATE tickless_senders SET worker = 0 WHERE name = 'w'`,
		`UPDATE tickless_senders SET sender = replace(sender, 'Number', 'Oumber') WHERE name = 'w'`, `UPDATE tickless_senders SET sender = x'00', seen = 'x' WHERE name = 'w'`,
		`UPDATE tickless_senders SET name = 'v' WHERE name = 'w'`, `UPDATE tickless_senders SET sum = NULL WHERE name = 'w'`,
		`UPDATE tickless_limits SET used = replace(used, '1', '2')`, `UPDATE tickless_limits SET handler = 'other'`,
		`UPDATE tickless_groups SET until = until - 1`, `UPDATE tickless_groups SET used = replace(used, '1', '2')`, `UPDATE tickless_groups SET name = 'other' || char(0) || 'g'`,
		`UPDATE tickless_numbers SET wakes = wakes + 1`, `UPDATE tickless_numbers SET wakes = 'x'`, `UPDATE tickless_numbers SET numbers = replace(numbers, ':1', ':2')`, `UPDATE tickless_numbers SET sum = sum + 1`,
	} {
		path := newPath(t)
		st := open(t, path)
		c := durable.New(st)
		require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{Concurrency: 1, GroupConcurrency: 1}))
		for i := range 4 {
			_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint(i), Handler: "h", Group: "g"}, durable.After(0))
			require.NoError(t, err)
		}
		a, err := claim(t, st, 1)
		require.NoError(t, err)
		require.Len(t, a.Tasks, 1)
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.Exec(damage)
		require.NoError(t, err)
		require.NoError(t, db.Close())

		_, err = st.Verify(ctx)
		require.ErrorIs(t, err, sqlitestore.ErrDamaged, damage)
		h, err := st.Check(ctx)
		otherWorker := func() (store.Answer, error) {
			return st.Do(ctx, 0, store.Stamp{Sender: fmt.Sprint("w", time.Now().UnixNano()), Number: 1}, store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 4, Handlers: []string{"h"}}})
		}
		switch {
		case strings.Contains(damage, "numbers"):
			require.ErrorIs(t, err, sqlitestore.ErrDamaged, damage)
			_, err = otherWorker()
			require.ErrorIs(t, err, sqlitestore.ErrDamaged, damage)
		default:
			require.NoError(t, err)
			require.Contains(t, strings.Join(h.Warnings, "\n"), "damaged", damage)
			_, err = otherWorker()
			require.NoError(t, err, damage)
			if strings.Contains(damage, "WHERE name = 'w'") && !strings.Contains(damage, "name = 'v'") {
				_, err = claim(t, st, 1)
				require.ErrorIs(t, err, sqlitestore.ErrDamaged, damage)
			}
		}
		_, err = st.Repair(ctx, 0)
		require.NoError(t, err, damage)
		_, err = st.Verify(ctx)
		require.NoError(t, err, damage)
		_, err = claim(t, st, 1)
		require.NoError(t, err, damage)
		_, err = otherWorker()
		require.NoError(t, err, damage)
		r, err := st.Repair(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, store.Repair{Looked: 4}, r)
	}
}

// Pending tasks are missing in the index that claims use. Check warns, Verify finds this, and
// after Repair all tasks run.
func TestMissingIndexEntries(t *testing.T) {
	ctx := t.Context()
	path := newPath(t)
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	for i := range 20 {
		_, err := durable.New(st).Schedule(ctx, durable.Task{Key: fmt.Sprintf("key%02d", i), Handler: "h"}, durable.After(0))
		require.NoError(t, err)
	}
	require.NoError(t, st.Close())
	exec := func(statements ...string) {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		defer db.Close()
		for _, s := range statements {
			_, err = db.Exec(s)
			require.NoError(t, err, s)
		}
	}
	// While the index has no pending tasks, write eight rows again.
	exec(`CREATE TABLE aside AS SELECT * FROM tickless_tasks WHERE id >= 'key12'`, `DELETE FROM tickless_tasks WHERE id >= 'key12'`,
		`PRAGMA writable_schema = ON`, `UPDATE sqlite_schema SET sql = replace(sql, 'WHERE state = 1', 'WHERE state = 99')`)
	exec(`INSERT INTO tickless_tasks SELECT * FROM aside`, `DROP TABLE aside`,
		`PRAGMA writable_schema = ON`, `UPDATE sqlite_schema SET sql = replace(sql, 'WHERE state = 99', 'WHERE state = 1')`)

	st = open(t, path)
	h, err := st.Check(ctx)
	require.NoError(t, err)
	require.Contains(t, strings.Join(h.Warnings, "\n"), "the indexes contain [12 0 0 0]")
	_, err = st.Verify(ctx)
	require.ErrorIs(t, err, sqlitestore.ErrDamaged)
	_, err = st.Repair(ctx, 0)
	require.NoError(t, err)
	n, err := st.Verify(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 20, n)
	a, err := claim(t, st, 100)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 20)
}
