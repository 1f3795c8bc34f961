package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

func open(t *testing.T, path string, opts ...sqlitestore.Option) *sqlitestore.Store {
	st, err := sqlitestore.Open(path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "tasks.db") }

// fill schedules n tasks that are due later, and returns their keys.
func fill(t *testing.T, st *sqlitestore.Store, n int) (keys []string) {
	var items []durable.Item
	for i := range n {
		keys = append(keys, fmt.Sprint("key", i))
		items = append(items, durable.Item{Task: durable.Task{Key: keys[i], Handler: "h", Body: []byte(strings.Repeat("body ", 40))}, When: durable.After(time.Hour)})
	}
	_, err := durable.New(st).ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	return keys
}

func schedule(ctx context.Context, st *sqlitestore.Store, key string) error {
	_, err := durable.New(st).Schedule(ctx, durable.Task{Key: key, Handler: "h"}, durable.After(time.Hour))
	return err
}

// application opens the file like an application that uses SQLite.
func application(t *testing.T, path string, more string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"+more)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestScheduleTx(t *testing.T) {
	db := application(t, newPath(t), "&_pragma=synchronous(FULL)")
	_, err := db.Exec(`CREATE TABLE orders (id TEXT)`)
	require.NoError(t, err)
	st, err := sqlitestore.OpenDB(t.Context(), db, sqlitestore.WithOneProcess())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	came := make(chan string, 10)
	w := worker(st, func(d durable.Delivery) { came <- d.Key })
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	item := func(key string) durable.Item {
		return durable.Item{Task: durable.Task{Key: key, Handler: "h", Body: []byte(time.Now().Format(time.RFC3339Nano))}, When: durable.After(0)}
	}
	for _, key := range []string{"rolled back", "committed"} {
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec(`INSERT INTO orders VALUES (?)`, key)
		require.NoError(t, err)
		out, err := st.ScheduleTx(t.Context(), tx, item(key))
		require.NoError(t, err)
		require.Equal(t, []store.Outcome{store.Created}, out)
		_, err = st.Get(t.Context(), 0, key)
		require.ErrorIs(t, err, store.ErrNotFound)
		time.Sleep(10 * time.Millisecond)
		if key == "committed" {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
		}
	}
	select {
	case key := <-came:
		require.Equal(t, "committed", key)
	case <-time.After(10 * time.Second):
		t.Fatal("the worker was not woken")
	}
	require.NoError(t, w.Shutdown(t.Context()))
	require.NoError(t, <-ended)
	var orders int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM orders`).Scan(&orders))
	require.Equal(t, 1, orders)
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
}

// ScheduleTx refuses a transaction that does not sync its commit, or is on another file.
func TestScheduleTx_Refused(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	for name, db := range map[string]*sql.DB{
		"not synced":   application(t, path, "&_pragma=synchronous(NORMAL)"),
		"another file": application(t, newPath(t), ""),
	} {
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = st.ScheduleTx(t.Context(), tx, durable.Item{Task: durable.Task{Key: "k", Handler: "h"}, When: durable.After(0)})
		require.ErrorIs(t, err, store.ErrUnfit, name)
		require.NoError(t, tx.Rollback())
	}
}

// An application holds the file's lock for long. A call waits until its context ends.
func TestBusy(t *testing.T) {
	hold := 500 * time.Millisecond
	if long() {
		hold = 5 * time.Second
	}
	path := newPath(t)
	st := open(t, path)
	db := application(t, path, "")
	tx, err := db.Begin()
	require.NoError(t, err)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = schedule(ctx, st, "short")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, store.ErrNotDone)
	require.ErrorIs(t, err, sqlitestore.ErrBusy)
	waited := make(chan error, 1)
	go func() { waited <- schedule(context.Background(), st, "long") }()
	time.Sleep(time.Until(begin.Add(hold)))
	_, err = st.Stats(t.Context(), 0) // reads still work
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-waited)
	_, err = st.Get(t.Context(), 0, "short")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestReadOnly(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	fill(t, st, 10)
	tool := open(t, path, sqlitestore.WithReadOnly())
	n, err := tool.Stats(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, 10, n.Pending)
	require.ErrorIs(t, schedule(t.Context(), tool, "k"), sqlitestore.ErrReadOnly)
	looked, err := tool.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 10, looked)
	_, err = sqlitestore.Open(newPath(t), sqlitestore.WithReadOnly())
	require.Error(t, err)
}

// A user who may not write the file or its folder gets clear errors.
func TestReadOnly_Permissions(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil || os.Getuid() != 0 {
		t.Skip("this test needs root and setpriv, to start a process of another user")
	}
	for _, modes := range [][2]os.FileMode{{0o444, 0o755}, {0o644, 0o755}, {0o666, 0o755}, {0o444, 0o777}} {
		dir := filepath.Join(os.TempDir(), fmt.Sprint("tickless-", rand.Uint64()))
		require.NoError(t, os.Mkdir(dir, 0o700))
		defer os.RemoveAll(dir)
		path, program := filepath.Join(dir, "tasks.db"), filepath.Join(dir, "test")
		require.NoError(t, open(t, path).Close())
		require.NoError(t, os.Chmod(path, modes[0]))
		require.NoError(t, os.Chmod(dir, modes[1]))
		content, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(program, content, 0o755))
		cmd := exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TICKLESS_CHILD=nobody", "TICKLESS_FILE="+path)
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, string(text))
	}
}

// nobodyChild runs as a user who may not write the file, or not its folder.
func nobodyChild(path string) error {
	for _, opts := range [][]sqlitestore.Option{nil, {sqlitestore.WithReadOnly()}} {
		_, err := sqlitestore.Open(path, opts...)
		if !errors.Is(err, sqlitestore.ErrReadOnly) || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), path) {
			return fmt.Errorf("a call of a user who may not write: %w", err)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() == 0o777 { // it may read
			return err
		}
	}
	return nil
}

// The error for a file that cannot be there has its name and the reason, not only SQLite's number.
func TestOpen_Refused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{dir: "folder", filepath.Join(dir, "missing", "tasks.db"): "no such file", filepath.Join(file, "tasks.db"): "not a directory"} {
		for _, opts := range [][]sqlitestore.Option{nil, {sqlitestore.WithReadOnly()}} {
			_, err := sqlitestore.Open(path, opts...)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, want)
		}
	}
}

func TestOpen_NoFile(t *testing.T) {
	for _, path := range []string{"", ":memory:"} {
		_, err := sqlitestore.Open(path)
		require.ErrorIs(t, err, store.ErrUnfit)
		require.ErrorContains(t, err, "memstore")
	}
	require.NoFileExists(t, ":memory:")
}

func TestGone(t *testing.T) {
	for _, name := range []string{"tasks.db", "tasks.db-wal", ""} {
		dir := filepath.Join(t.TempDir(), "folder")
		require.NoError(t, os.Mkdir(dir, 0o700))
		st := open(t, filepath.Join(dir, "tasks.db"))
		fill(t, st, 10)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)), name)
		require.ErrorIs(t, schedule(t.Context(), st, "k"), sqlitestore.ErrGone, name)
		_, err := st.Check(t.Context())
		require.ErrorIs(t, err, sqlitestore.ErrGone, name)
		_, err = st.Get(t.Context(), 0, "key1")
		require.ErrorIs(t, err, sqlitestore.ErrGone, name)
		require.ErrorIs(t, st.Backup(t.Context(), newPath(t)), sqlitestore.ErrGone, name)
		if name != "tasks.db-wal" {
			require.NoFileExists(t, filepath.Join(dir, "tasks.db"))
		}
	}
}

func TestSchema(t *testing.T) {
	for name, query := range map[string]string{
		"foreign": `CREATE TABLE tickless_tasks (x)`,
		"newer":   `UPDATE tickless_numbers SET version = version + 1`,
		"column":  `ALTER TABLE tickless_tasks RENAME COLUMN attempts TO attemptz`,
		"numbers": `ALTER TABLE tickless_numbers RENAME COLUMN wakes TO wakez`,
		"index":   `DROP INDEX tickless_due`,
	} {
		path := newPath(t)
		if name != "foreign" {
			require.NoError(t, open(t, path).Close())
		}
		_, err := application(t, path, "").Exec(query)
		require.NoError(t, err)
		_, err = sqlitestore.Open(path)
		require.ErrorIs(t, err, store.ErrSchema, name)
	}
	path := newPath(t)
	st := open(t, path)
	_, err := application(t, path, "").Exec(`UPDATE tickless_numbers SET version = version + 1`)
	require.NoError(t, err)
	require.ErrorIs(t, schedule(t.Context(), st, "k"), store.ErrSchema, "another program has upgraded the tables while the Store is open")
	_, err = st.Check(t.Context())
	require.ErrorIs(t, err, store.ErrSchema)
	path = newPath(t)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("this is no database ", 100)), 0o600))
	_, err = sqlitestore.Open(path)
	require.ErrorIs(t, err, sqlitestore.ErrDamaged)
}

func TestBackup(t *testing.T) {
	st := open(t, newPath(t))
	keys := fill(t, st, 1000)
	to := newPath(t)
	require.NoError(t, os.WriteFile(to+".part", []byte("somebody else's"), 0o600))
	require.NoError(t, st.Backup(t.Context(), to))
	files, err := filepath.Glob(to + "*.part")
	require.NoError(t, err)
	require.Equal(t, []string{to + ".part"}, files)
	require.ErrorIs(t, st.Backup(t.Context(), to), os.ErrExist)
	copied := open(t, to)
	n, err := copied.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(keys), n)
}

func claim(t *testing.T, st *sqlitestore.Store, most int) (store.Answer, error) {
	return st.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 1}, store.Round{Lease: time.Second, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: most, Handlers: []string{"h"}}})
}

// An index entry points to another task's row. No task may run early or twice, and Verify
// must find the entry.
func TestDamagedIndex(t *testing.T) {
	path := newPath(t)
	st, err := sqlitestore.Open(path)
	require.NoError(t, err)
	begin := time.Now().Truncate(time.Second)
	for i := range 10 { // the last one is not due yet
		at := begin.Add(time.Duration(i) * time.Microsecond)
		if i == 9 {
			at = at.Add(time.Hour)
		}
		_, err := durable.New(st).Schedule(t.Context(), durable.Task{Key: fmt.Sprint("key", i), Handler: "h"}, durable.At(at))
		require.NoError(t, err)
	}
	require.NoError(t, st.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	entry := binary.BigEndian.AppendUint64(nil, uint64(begin.UnixMicro()+5)) // of key5, whose row is the sixth
	at := bytes.Index(content, append(entry, 6))
	require.Positive(t, at)
	for row := byte(0); row < 12; row++ {
		if row == 6 {
			continue
		}
		b := bytes.Clone(content)
		b[at+len(entry)] = row
		path := newPath(t)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		st := open(t, path)
		_, err := st.Verify(t.Context())
		require.ErrorIs(t, err, sqlitestore.ErrDamaged)
		a, err := claim(t, st, 20)
		if err != nil {
			require.ErrorIs(t, err, sqlitestore.ErrDamaged)
		}
		seen := map[string]bool{"key9": true}
		for _, x := range a.Tasks {
			require.False(t, seen[x.ID], "row %d: %s", row, x.ID)
			seen[x.ID] = true
		}
	}
}

// A damaged row does not stop other tasks from running, and Verify finds it.
func TestDamagedRow(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	c := durable.New(st)
	for _, key := range []string{"damaged", "sound"} {
		_, err := c.Schedule(t.Context(), durable.Task{Key: key, Handler: "h"}, durable.After(0))
		require.NoError(t, err)
	}
	_, err := application(t, path, "").Exec(`UPDATE tickless_tasks SET record = x'00' WHERE id = 'damaged'`)
	require.NoError(t, err)
	a, err := claim(t, st, 10)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)
	require.Equal(t, "sound", a.Tasks[0].ID)
	_, err = st.Verify(t.Context())
	require.ErrorIs(t, err, sqlitestore.ErrDamaged)
	require.ErrorContains(t, err, "damaged")
	_, err = c.Schedule(t.Context(), durable.Task{Key: "damaged", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	_, err = st.Repair(t.Context(), 0)
	require.NoError(t, err)
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
}

// Another program has removed running tasks of a limit. After Repair, other tasks run
// instead.
func TestRepair_Limits(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	c := durable.New(st)
	require.NoError(t, c.SetLimit(t.Context(), "h", durable.Limit{Concurrency: 2}))
	claims := func(number int64) int {
		for range 3 {
			_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprint(time.Now().UnixNano()), Handler: "h"}, durable.After(0))
			require.NoError(t, err)
		}
		a, err := st.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: number}, store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 10, Handlers: []string{"h"}}})
		require.NoError(t, err)
		return len(a.Tasks)
	}
	require.Equal(t, 2, claims(1))
	_, err := application(t, path, "").Exec(`DELETE FROM tickless_tasks WHERE state = 2`)
	require.NoError(t, err)
	require.Zero(t, claims(2))
	_, err = st.Repair(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 2, claims(3))
	_, err = st.Repair(t.Context(), 0)
	require.NoError(t, err)
	require.Zero(t, claims(4))
}

// The 20 rows that are due first are damaged. A claim of 4 tasks skips them all.
func TestDamagedRow_FullClaim(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	var items []durable.Item
	for i := range 30 {
		items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprintf("key%02d", i), Handler: "h"}, When: durable.After(0)})
	}
	_, err := durable.New(st).ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	_, err = application(t, path, "").Exec(`UPDATE tickless_tasks SET record = x'00', due = iif(id < 'key10', due, 'x') WHERE id < 'key20'`)
	require.NoError(t, err)
	a, err := claim(t, st, 4)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 4)
	require.Equal(t, "key20", a.Tasks[0].ID)
	require.Zero(t, a.Next, "more tasks are due")
	_, err = st.Verify(t.Context())
	require.ErrorIs(t, err, sqlitestore.ErrDamaged)
}

// A running task's row is damaged. No worker wakes up for the end of its lease.
func TestDamagedRow_Running(t *testing.T) {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	path := newPath(t)
	st := open(t, path, sqlitestore.WithClock(clk))
	_, err := durable.New(st).Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	a, err := claim(t, st, 4)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)
	_, err = application(t, path, "").Exec(`UPDATE tickless_tasks SET record = x'00'`)
	require.NoError(t, err)
	clk.Advance(time.Minute)
	a, err = st.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 2}, store.Round{Lease: time.Second, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 4, Handlers: []string{"h"}}})
	require.NoError(t, err)
	require.Empty(t, a.Tasks)
	require.EqualValues(t, -1, a.Next, "the damaged row's lease must not cause a claim")
}

// A bit is flipped, or the file is truncated, at any place. Either Verify finds the
// damage, or all tasks are unchanged.
func TestFlips(t *testing.T) {
	places := 40
	if long() {
		places = 400
	}
	from := newPath(t)
	st := open(t, from)
	keys := fill(t, st, 200)
	whole := newPath(t)
	require.NoError(t, st.Backup(t.Context(), whole))
	content, err := os.ReadFile(whole)
	require.NoError(t, err)
	sound := func(b []byte) (harmless bool) {
		path := newPath(t)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		x, err := sqlitestore.Open(path)
		if err != nil {
			return false
		}
		defer x.Close()
		if _, err = x.Verify(t.Context()); err != nil {
			return false
		}
		for _, key := range keys {
			want, err := st.Get(t.Context(), 0, key)
			require.NoError(t, err)
			got, err := x.Get(t.Context(), 0, key)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		return true
	}
	require.True(t, sound(content))
	harmless := 0
	for range places {
		b := append([]byte(nil), content...)
		b[rand.N(len(b))] ^= 1 << rand.N(8)
		if sound(b) {
			harmless++
		}
	}
	require.False(t, sound(content[:rand.N(len(content)-4096)]), "Verify did not find the truncation")
	t.Logf("%d of %d flips were harmless, and Verify found the others", harmless, places)
}

// The file system becomes full. Calls return errors, and the Store continues when there
// is space.
func TestFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system: %s", out)
	}
	defer func() { require.NoError(t, exec.Command("umount", dir).Run()) }()
	st, err := sqlitestore.Open(filepath.Join(dir, "tasks.db"))
	require.NoError(t, err)
	acknowledged := 0
	for ; err == nil; acknowledged++ {
		err = schedule(t.Context(), st, fmt.Sprint("key", acknowledged))
	}
	acknowledged--
	require.ErrorIs(t, err, store.ErrFull)
	n, err := st.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, acknowledged, n)
	require.NoError(t, exec.Command("mount", "-o", "remount,size=8m", dir).Run())
	require.NoError(t, schedule(t.Context(), st, "when there is room"))
	require.NoError(t, st.Close())
	st, err = sqlitestore.Open(filepath.Join(dir, "tasks.db"))
	require.NoError(t, err)
	n, err = st.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, acknowledged+1, n)
	require.NoError(t, st.Close())
}

// faultyChild schedules tasks while every tenth sync fails, and prints the acknowledged
// keys.
func faultyChild(path string) error {
	st, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	for i := range 300 {
		key := fmt.Sprint("key", i)
		if err := schedule(context.Background(), st, key); err == nil {
			fmt.Println("acknowledged", key)
		} else if errors.Is(err, store.ErrUnfit) {
			return err
		} else {
			fmt.Println("refused", key)
		}
	}
	return st.Close()
}

// TestSyncFails uses strace to make syncs of the disk fail with EIO.
func TestSyncFails(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("this test needs strace")
	}
	path := newPath(t)
	require.NoError(t, open(t, path).Close())
	var acknowledged []string
	refused := 0
	over := make(chan bool)
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO:when=7+10", os.Args[0])
	cmd.Env = append(os.Environ(), "TICKLESS_CHILD=faulty", "TICKLESS_FILE="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(over)
		b, _ := io.ReadAll(out)
		for line := range strings.Lines(string(b)) {
			switch what, key, _ := strings.Cut(strings.TrimSpace(line), " "); what {
			case "acknowledged":
				acknowledged = append(acknowledged, key)
			case "refused":
				refused++
			}
		}
	}()
	<-over
	_ = cmd.Wait()
	if len(acknowledged)+refused == 0 {
		t.Skip("strace cannot trace here")
	}
	require.Positive(t, refused)
	require.NotEmpty(t, acknowledged)
	st := open(t, path)
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
	for _, key := range acknowledged {
		_, err := st.Get(t.Context(), 0, key)
		require.NoError(t, err, "lost: %s", key)
	}
	t.Logf("%d acknowledged, %d refused", len(acknowledged), refused)
}

// A reader keeps a transaction open for long. The log grows, Check warns of it, and no
// call fails.
func TestLongReader(t *testing.T) {
	wait := time.Second
	if long() {
		wait = time.Minute
	}
	path := newPath(t)
	st := open(t, path)
	fill(t, st, 1000)
	tx, err := application(t, path, "").BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow(`SELECT count(*) FROM tickless_tasks`).Scan(&n))
	begin := time.Now()
	for time.Since(begin) < wait {
		fill(t, st, 1000)
	}
	t.Logf("the log has %d MB", st.WAL()>>20)
	require.NoError(t, tx.QueryRow(`SELECT count(*) FROM tickless_tasks`).Scan(&n))
	require.Equal(t, 1000, n)
	require.NoError(t, tx.Rollback())
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
}

// The log is reused even if two processes write all the time. No reader blocks it.
func TestLog_TwoWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 170 MB")
	}
	path := newPath(t)
	var all sync.WaitGroup
	for i := range 2 {
		st := open(t, path)
		all.Go(func() {
			c, body := durable.New(st), make([]byte, 60_000)
			for range 90 {
				var items []durable.Item
				for j := range 16 {
					items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint(i, j), Handler: "h", Body: body}, When: durable.After(time.Hour)})
				}
				if _, err := c.ScheduleBatch(t.Context(), items); !assert.NoError(t, err) || !assert.Less(t, st.WAL(), int64(128<<20)) {
					return
				}
			}
		})
	}
	all.Wait()
}

// The files are copied while they are in use, which the docs forbid. The copy is in an
// older state, or Verify finds damage.
func TestCopyInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tasks.db")
	st := open(t, path)
	sound := 0
	for i := range 10 {
		fill(t, st, 500)
		done := make(chan error, 1)
		go func() { done <- schedule(context.Background(), st, fmt.Sprint("meanwhile", i)) }()
		to := t.TempDir()
		require.NoError(t, exec.Command("cp", path, path+"-wal", to).Run()) // this process must not close the file
		require.NoError(t, <-done)
		x, err := sqlitestore.Open(filepath.Join(to, "tasks.db"))
		if err != nil {
			continue
		}
		if _, err := x.Verify(t.Context()); err == nil {
			sound++
		}
		require.NoError(t, x.Close())
	}
	t.Logf("%d of 10 copies were undamaged, and Verify found the others", sound)
}

// VACUUM may give rows new numbers. A Store that knows the old ones must not use them.
func TestStore_AfterVacuum(t *testing.T) {
	path := newPath(t)
	st := open(t, path)
	c := durable.New(st)
	for _, key := range []string{"a", "b", "c"} {
		_, err := c.Schedule(t.Context(), durable.Task{Key: key, Handler: "h"}, durable.After(0))
		require.NoError(t, err)
	}
	_, err := c.Cancel(t.Context(), "a")
	require.NoError(t, err)
	s := store.Stamp{Sender: "w", Number: 1}
	a, err := st.Do(t.Context(), 0, s, store.Round{Lease: time.Minute, MaxCrashes: 5, Claim: store.Claim{Asked: true, Max: 2, Handlers: []string{"h"}}})
	require.NoError(t, err)
	require.Len(t, a.Tasks, 2)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	_, err = db.Exec("VACUUM")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	s.Number++
	x := a.Tasks[0]
	done, err := st.Do(t.Context(), 0, s, store.Round{Lease: time.Minute, MaxCrashes: 5,
		Reports: []store.Report{{Lease: store.Lease{ID: x.ID, Token: x.Token}, End: store.Done, Due: x.Due}}})
	require.NoError(t, err)
	require.Equal(t, []store.Receipt{store.Accepted}, done.Receipts)
	_, err = c.Get(t.Context(), x.ID)
	require.ErrorIs(t, err, durable.ErrNotFound)
	_, err = c.Get(t.Context(), a.Tasks[1].ID)
	require.NoError(t, err)
	_, err = st.Verify(t.Context())
	require.NoError(t, err)
}
