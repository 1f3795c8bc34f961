package diskstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// A filledDisk is a file system of a size, of which the files of the store take what they
// have.
type filledDisk struct {
	vfs.FS
	size uint64
}

func (d *filledDisk) GetDiskUsage(dir string) (vfs.DiskUsage, error) {
	names, err := d.List(dir)
	used := uint64(0)
	for _, name := range names {
		if info, err := d.Stat(d.PathJoin(dir, name)); err == nil { // or it is gone
			used += uint64(info.Size())
		}
	}
	return vfs.DiskUsage{TotalBytes: d.size, UsedBytes: used, AvailBytes: d.size - min(d.size, used)}, err
}

// A small disk that is full has room again when its tasks are gone, also if they are so
// small that what cancels them is nearly as large.
func TestRoom_TasksThatAreGoneMakeRoom(t *testing.T) {
	begins(t)
	if testing.Short() {
		t.Skip("filling a disk takes half a minute under the race detector")
	}
	for name, x := range map[string]struct{ bytes, batch, least int }{
		"large": {60_000, 10, 500},
		"small": {40, 100, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "small" && !long() {
				t.Skip("TICKLESS_CHAOS is not long: Pebble lets half a minute pass after a compaction has failed")
			}
			fillAndCancel(t, x.bytes, x.batch, x.least)
		})
	}
}

func fillAndCancel(t *testing.T, size, batch, least int) {
	d := &filledDisk{vfs.NewMem(), 12 << 20}
	s := open(t, "store", diskstore.WithFS(d), diskstore.WithShards(1))
	number := int64(0)
	random := rand.NewChaCha8([32]byte{1})
	change := func(op store.Op, from int) error {
		c := store.Command{Op: op}
		for i := range batch {
			x := store.Item{ID: fmt.Sprintf("a key of a length that many have %d", from+i)}
			if op == store.Schedule {
				record := make([]byte, size)
				_, _ = random.Read(record[:size/10]) // the rest takes no room
				x.When, x.Task = store.After(time.Hour), store.Task{ID: x.ID, Handler: "h", Record: record}
			}
			c.Items = append(c.Items, x)
		}
		number++
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "s", Number: number}, c)
		return err
	}
	tasks := 0
	for refused := 0; refused < 10; { // until it is full of tasks, and not of files that will go
		diskstore.LookForRoom(s)
		if err := change(store.Schedule, tasks); err == nil {
			tasks, refused = tasks+batch, 0
			continue
		} else {
			require.ErrorIs(t, err, store.ErrFull)
		}
		refused++
		time.Sleep(20 * time.Millisecond)
	}
	require.Greater(t, tasks, least)
	for i := 0; i < tasks; i += batch {
		require.NoError(t, change(store.Cancel, i))
	}
	for err := change(store.Schedule, 0); err != nil; err = change(store.Schedule, 0) {
		require.ErrorIs(t, err, store.ErrFull)
		time.Sleep(10 * time.Millisecond) // room is made by another goroutine
		diskstore.LookForRoom(s)
	}
	require.NoError(t, s.Close())
	note(t, "a small disk full of tasks of %d bytes, which were cancelled: there was room again without opening the store again", size)
}

// A disk that is too small for a store has an error, and no store.
func TestOpen_TinyDisk(t *testing.T) {
	mem := vfs.NewMem()
	_, err := diskstore.Open("store", diskstore.WithFS(&filledDisk{mem, 1 << 20}), silent)
	require.ErrorIs(t, err, store.ErrFull)
	names, err := mem.List("store")
	require.NoError(t, err)
	require.Empty(t, names)
}

// The smallest disk that a store can be on takes tasks until it is full, and does not
// fail.
func TestRoom_SmallestDisk(t *testing.T) {
	s := open(t, "store", diskstore.WithFS(&filledDisk{vfs.NewMem(), 4 << 20}), diskstore.WithShards(1))
	var err error
	n := 1
	for ; err == nil; n++ {
		err = schedule(s, n, fmt.Sprint(n), 3000)
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.Greater(t, n, 100)
	require.NoError(t, s.Close())
}

// When no table finds room and all writes wait for it, so that nothing can be cancelled
// either, the store fails, and what was acknowledged is there when there is room.
func TestRoom_WritesThatWaitForTables(t *testing.T) {
	var full atomic.Bool
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && strings.HasSuffix(op.Path, ".sst") && op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(time.Millisecond), silent)
	full.Store(true)
	n := 0
	var err error
	for err == nil || errors.Is(err, store.ErrFull) {
		diskstore.LookForRoom(s) // the disk says that there is some
		if err = schedule(s, n+1, fmt.Sprint(n), 1000); err == nil {
			n++
		}
	}
	require.ErrorIs(t, err, diskstore.ErrFailed)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, s.Close(), diskstore.ErrFailed)
	full.Store(false)
	s = open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), silent)
	v, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, v.Pending, int64(n))
	require.NoError(t, s.Close())
}

// A tableFS is a file system that calls made for each table that is begun, and wrote for
// each write to one, with what it is made for.
type tableFS struct {
	vfs.FS
	made, wrote func(name string, compacts bool) error
}

func (f *tableFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !strings.HasSuffix(name, ".sst") {
		return f.FS.Create(name, c)
	}
	compacts := c == "pebble-compaction"
	if err := f.made(name, compacts); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, c)
	return &tableFile{file, f, name, compacts}, err
}

func anyTable(string, bool) error { return nil }

type tableFile struct {
	vfs.File
	fs       *tableFS
	name     string
	compacts bool
}

func (f *tableFile) Write(p []byte) (int, error) {
	if err := f.fs.wrote(f.name, f.compacts); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// Compactions that find no room hold up nothing: whoever cancels tasks makes some, and
// what is in memory needs less.
func TestRoom_CompactionsThatFindNone(t *testing.T) {
	begins(t)
	fs := &tableFS{FS: vfs.NewMem(), made: anyTable, wrote: func(name string, compacts bool) error {
		if compacts {
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		return nil
	}}
	s := open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(time.Millisecond))
	number := int64(0)
	tasks := 0
	for range 60 { // tables in level 0, of which 24 stop writes
		for err := error(store.ErrFull); err != nil; {
			number++
			if err = schedule(s, int(number), fmt.Sprint(tasks), 50_000); err != nil {
				require.ErrorIs(t, err, store.ErrFull)
			}
			diskstore.LookForRoom(s)
		}
		tasks++
	}
	for i := range tasks {
		number++
		c := store.Command{Op: store.Cancel, Items: []store.Item{{ID: fmt.Sprint(i)}}}
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "s", Number: number}, c)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	note(t, "a disk that is too full to rewrite tables, 60 of them in level 0: tasks are cancelled")
}

// While compactions do not keep up, and there is room, writes wait for them. Close ends
// that.
func TestRoom_WritesWaitForLevel0(t *testing.T) {
	for _, closes := range []bool{false, true} {
		release := make(chan struct{})
		goOn := sync.OnceFunc(func() { close(release) })
		fs := &tableFS{FS: vfs.NewMem(), wrote: anyTable, made: func(_ string, compacts bool) error {
			if compacts {
				<-release
			}
			return nil
		}}
		s := open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), diskstore.WithShards(1), diskstore.WithMemTable(64<<10))
		t.Cleanup(goOn) // before the store's
		const tables = 200
		var written atomic.Int64
		ended := make(chan error, 1)
		go func() {
			for n := range tables {
				if err := schedule(s, n+1, fmt.Sprint(n), 50_000); err != nil {
					ended <- err
					return
				}
				written.Add(1)
			}
			ended <- nil
		}()
		for !diskstore.Level0IsHigh(s) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond) // in which all would be written
		require.Less(t, written.Load(), int64(tables))
		closed := make(chan error, 1)
		if closes {
			go func() { closed <- s.Close() }()
			require.ErrorIs(t, <-ended, store.ErrClosed)
			goOn()
		} else {
			goOn()
			require.NoError(t, <-ended)
			closed <- s.Close()
		}
		require.NoError(t, <-closed)
	}
}

// What a table had written is gone while the next one waits for room: others may find
// some.
func TestRoom_NoneIsHeldByWhoWaits(t *testing.T) {
	failed := make(chan string, 1000)
	fs := &tableFS{FS: vfs.NewMem(), made: anyTable, wrote: func(name string, compacts bool) error {
		if compacts {
			failed <- name
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		return nil
	}}
	s := open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(time.Hour))
	for n := range 10 {
		if err := schedule(s, n+1, fmt.Sprint(n), 50_000); err != nil {
			require.ErrorIs(t, err, store.ErrFull)
		}
		diskstore.LookForRoom(s)
	}
	name := <-failed
	require.Eventually(t, func() bool {
		_, err := fs.Stat(name)
		return errors.Is(err, os.ErrNotExist)
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.Close()) // and it waits no hour
}

// A Close that waits for writes that wait for tables gives these as much time as they have
// without it: there may be room again.
func TestRoom_CloseWaitsForWritesThatWait(t *testing.T) {
	var flushesFail atomic.Bool
	var tries atomic.Int64
	fs := &tableFS{FS: vfs.NewMem(), made: anyTable, wrote: func(name string, compacts bool) error {
		if compacts || flushesFail.Load() {
			tries.Add(1)
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		return nil
	}}
	s := open(t, "store", diskstore.WithFS(&filledDisk{fs, 1 << 30}), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(100*time.Millisecond))
	var number atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for {
			diskstore.LookForRoom(s) // the disk says that there is some
			n := int(number.Add(1))
			if err := schedule(s, n, fmt.Sprint(n), 50_000); err != nil && !errors.Is(err, store.ErrFull) {
				ended <- err
				return
			}
		}
	}()
	for number.Load() < 20 { // so that there is something to compact
		time.Sleep(time.Millisecond)
	}
	flushesFail.Store(true)
	for last := int64(0); last != number.Load(); time.Sleep(200 * time.Millisecond) { // until all writes wait
		last = number.Load()
	}
	tries.Store(0)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	time.Sleep(time.Second)
	require.Less(t, tries.Load(), int64(200), "it was tried without a pause")
	flushesFail.Store(false)
	require.NoError(t, <-closed)
	require.ErrorIs(t, <-ended, store.ErrClosed)
}

// What is in memory leaves room for a compaction, which makes some.
func TestRoom_SomeIsLeftForCompactions(t *testing.T) {
	var little atomic.Bool
	var flushed, compacted atomic.Int64
	fs := &tableFS{FS: vfs.NewMem(), made: anyTable}
	fs.wrote = func(name string, compacts bool) error {
		switch {
		case compacts && !little.Load(): // so that there is something to be rewritten
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		case compacts:
			compacted.Add(1)
		case little.Load():
			flushed.Add(1)
		}
		return nil
	}
	d := &shortDisk{FS: fs}
	d.left.Store(1 << 29)
	s := open(t, "store", diskstore.WithFS(d), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(time.Millisecond))
	number := 0
	for n := range 20 {
		for err := error(store.ErrFull); err != nil; {
			number++
			if err = schedule(s, number, fmt.Sprint(n), 50_000); err != nil {
				require.ErrorIs(t, err, store.ErrFull)
			}
			diskstore.LookForRoom(s)
		}
	}
	d.left.Store(8<<20 - 1) // less than a table of what is in memory leaves
	little.Store(true)
	for compacted.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	require.Zero(t, flushed.Load())
	d.left.Store(1 << 29)
	require.NoError(t, s.Close())
}

// A shortDisk says how much room it has.
type shortDisk struct {
	vfs.FS
	left atomic.Uint64
}

func (d *shortDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 30, AvailBytes: d.left.Load()}, nil
}

// The last of the room is not for tables: without it the log and the manifest would fail,
// and the store with them.
func TestRoom_TablesLeaveSome(t *testing.T) {
	var writes atomic.Int64
	d := &shortDisk{FS: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".sst") && op.Kind == errorfs.OpFileWrite {
			writes.Add(1)
		}
		return nil
	}))}
	d.left.Store(1 << 29)
	s := open(t, "store", diskstore.WithFS(d), diskstore.WithShards(1), diskstore.WithPause(time.Millisecond), silent)
	for n := range 10 {
		require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
	}
	d.left.Store(4 << 20)
	before := writes.Load()
	require.NoError(t, s.Close()) // without tables: what they would have is in the log
	require.Equal(t, before, writes.Load())
	d.left.Store(1 << 29)
	s = open(t, "store", diskstore.WithFS(d), silent)
	v, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 10, v.Pending)
	require.NoError(t, s.Close())
}

// A disk that has as much as has to be left, now a little more and now a little less, is not
// full and not full in turn.
func TestRoom_StaysFullNearTheLimit(t *testing.T) {
	d := &shortDisk{FS: vfs.NewMem()}
	const limit = 64 << 20
	d.left.Store(limit + 1)
	s := open(t, "store", diskstore.WithFS(d), diskstore.WithShards(1), silent)
	number := 0
	try := func(left uint64) error {
		d.left.Store(left)
		diskstore.LookForRoom(s)
		number++
		return schedule(s, number, fmt.Sprint(number), 100)
	}
	require.NoError(t, try(limit+1))
	require.ErrorIs(t, try(limit-1), store.ErrFull)
	require.ErrorIs(t, try(limit+1), store.ErrFull)
	require.NoError(t, try(limit+limit/16))
	require.NoError(t, try(limit+1))
	require.NoError(t, s.Close())
}

// A command that was carried out has its answer when it is sent again on a full disk, which
// refuses new ones.
func TestRoom_WhatWasCarriedOutHasItsAnswer(t *testing.T) {
	d := &shortDisk{FS: vfs.NewMem()}
	d.left.Store(1 << 29)
	s := open(t, "store", diskstore.WithFS(d), diskstore.WithShards(1))
	task := store.Task{ID: "k", Handler: "h"}
	for number, c := range []store.Command{
		{Op: store.Schedule, Items: []store.Item{{ID: "k", When: store.After(time.Hour), Task: task}}},
		{Op: store.Import, Items: []store.Item{{ID: "k", Entry: &store.Entry{Task: task, State: store.Pending, At: 1, Due: 1}}}},
	} {
		stamp := store.Stamp{Sender: "s", Number: int64(number + 1)}
		first, err := s.Change(t.Context(), 0, stamp, c)
		require.NoError(t, err)
		d.left.Store(4 << 20)
		diskstore.LookForRoom(s)
		other := store.Stamp{Sender: "other", Number: stamp.Number}
		_, err = s.Change(t.Context(), 0, other, c)
		require.ErrorIs(t, err, store.ErrFull)
		again, err := s.Change(t.Context(), 0, stamp, c)
		require.NoError(t, err)
		require.Equal(t, first, again)
		d.left.Store(1 << 29)
		diskstore.LookForRoom(s)
		again, err = s.Change(t.Context(), 0, other, c)
		require.NoError(t, err)
		require.Equal(t, []store.Outcome{[]store.Outcome{store.Replaced, store.Kept}[number]}, again)
	}
	require.NoError(t, s.Close())
}

// A directory that is not a store stays as it is.
func TestOpen_ForeignDirectoryStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	_, err := diskstore.Open(dir)
	require.ErrorIs(t, err, diskstore.ErrForeign)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// When too many files are open the store waits until there are fewer, and does not fill
// the log with what it tries.
func TestGate_TooManyOpenFiles(t *testing.T) {
	begins(t)
	var crowded atomic.Bool
	var tries atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if crowded.Load() && strings.HasSuffix(op.Path, ".sst") && (op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpCreate) {
			tries.Add(1)
			return syscall.EMFILE
		}
		return nil
	}))
	var lines bytes.Buffer // slog's handler writes one at a time
	s, err := diskstore.Open("store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
	require.NoError(t, err)
	crowded.Store(true)
	n := 1
	for ; n <= 100; n++ { // more than one memtable, and fewer than stop all writes
		require.NoError(t, schedule(s, n, fmt.Sprint(n), 1000))
	}
	for tries.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	began, before := time.Now(), tries.Load()
	time.Sleep(time.Second)
	more := tries.Load() - before
	require.Less(t, more, 5+5*int64(time.Since(began)/(200*time.Millisecond)), "it was tried without a pause")
	crowded.Store(false)
	for range 200 {
		require.NoError(t, schedule(s, n, fmt.Sprint(n), 1000))
		n++
	}
	v, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, n-1, v.Pending)
	require.NoError(t, s.Close())
	require.LessOrEqual(t, strings.Count(lines.String(), "\n"), 12)
	require.NotContains(t, lines.String(), "goroutine")
	note(t, "too many open files: tables are written and read when there are fewer")
}
