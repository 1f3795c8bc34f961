package diskstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
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

// logsOf returns the files of a store's log, the newest last.
func logsOf(t *testing.T, fs vfs.FS) (logs []string) {
	names, err := fs.List("store")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, "store/"+name)
		}
	}
	slices.Sort(logs)
	return logs
}

// has requires that a crash now, that keeps nothing that was not synced, leaves tasks
// from 0.
func has(t *testing.T, fs *vfs.MemFS, tasks int) {
	t.Helper()
	left := open(t, "store", diskstore.WithFS(fs.CrashClone(vfs.CrashCloneCfg{})))
	v, err := left.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, tasks, v.Pending)
	require.NoError(t, left.Close())
}

// If somebody removes all files of the log of a store that is open, the one that is
// written and those that are kept for later, what they had is in the tables before the
// next task is acknowledged, and the store goes on.
func TestLog_Removed(t *testing.T) {
	begins(t)
	fs := vfs.NewCrashableMem()
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithLogAge(0), diskstore.WithMemTable(64<<10))
	n := 0
	add := func() {
		require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
		n++
	}
	for len(logsOf(t, fs)) < 2 {
		add()
	}
	for range 3 {
		for _, name := range logsOf(t, fs) {
			if err := fs.Remove(name); !errors.Is(err, os.ErrNotExist) { // the store removes files too
				require.NoError(t, err)
			}
		}
		add()
		has(t, fs, n)
		for range 200 { // some tables
			add()
		}
		has(t, fs, n)
	}
	require.NoError(t, s.Close())
	note(t, "all files of the log of an open store removed, three times: what they had is written to tables, and it goes on")
}

// If the store is quiet after the next task that is so as well, although it had looked for
// the log just before.
func TestLog_RemovedAndQuiet(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithLogAge(200*time.Millisecond))
	tables := func() (tables []string) {
		names, err := fs.List("store")
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				tables = append(tables, name)
			}
		}
		slices.Sort(tables)
		return tables
	}
	require.NoError(t, schedule(s, 1, "0", 1000))
	before := tables()
	for _, name := range logsOf(t, fs) {
		require.NoError(t, fs.Remove(name))
	}
	require.NoError(t, schedule(s, 2, "1", 1000))
	for slices.Equal(tables(), before) {
		time.Sleep(10 * time.Millisecond)
	}
	require.NoError(t, s.Close())
	has(t, fs, 2)
}

// So it is with a file that has what no table has, and is not written any more.
func TestLog_OlderRemoved(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var stop atomic.Bool // the writing of tables
	faulty := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && stop.Load() {
			return syscall.EMFILE
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(faulty), diskstore.WithShards(1), diskstore.WithLogAge(0),
		diskstore.WithMemTable(64<<10), diskstore.WithPause(100*time.Millisecond))
	stop.Store(true)
	n := 0
	for before := len(logsOf(t, fs)); len(logsOf(t, fs)) < before+2; n++ {
		require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
	}
	logs := logsOf(t, fs)
	require.NoError(t, fs.Remove(logs[len(logs)-2]))
	stop.Store(false)
	require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
	has(t, fs, n+1)
}

// If the process ends before it has noticed, Open does: all files may be gone, or the
// newest alone.
func TestOpen_LogRemovedBeforeTheEnd(t *testing.T) {
	for _, all := range []bool{false, true} {
		fs := vfs.NewCrashableMem()
		s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithMemTable(64<<10))
		n := 0
		for ; len(logsOf(t, fs)) < 2; n++ {
			require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
		}
		for !diskstore.MarkerIsCurrent(s) {
			time.Sleep(time.Millisecond) // another goroutine writes it
		}
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		logs := logsOf(t, left)
		require.Greater(t, len(logs), 1)
		if !all {
			logs = logs[len(logs)-1:]
		}
		for _, name := range logs {
			require.NoError(t, left.Remove(name))
		}
		_, err := diskstore.Open("store", diskstore.WithFS(left), silent)
		require.ErrorIs(t, err, diskstore.ErrDamaged, "all: %v", all)
		require.ErrorContains(t, err, ".log")
	}
}

// If the directory is removed nothing can be saved, and the store says so.
func TestLog_DirectoryRemoved(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithLogAge(0))
	require.NoError(t, schedule(s, 1, "a", 1000))
	require.NoError(t, fs.RemoveAll("store"))
	require.ErrorIs(t, schedule(s, 2, "b", 1000), diskstore.ErrFailed)
	require.ErrorIs(t, schedule(s, 3, "c", 1000), store.ErrNotDone)
}

// renamed is a file system that gives an old file its new name, and then cannot open it.
type renamed struct {
	vfs.FS
	crowded *atomic.Int64
}

func (r renamed) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if r.crowded.Add(-1) >= 0 {
		if err := r.Rename(old, name); err != nil {
			return nil, err
		}
		return nil, syscall.ENFILE
	}
	return r.FS.ReuseForWrite(old, name, c)
}

// A moment with too many open files, just when another file of the log is begun, does
// not end the store.
func TestGate_NoDescriptorForTheLog(t *testing.T) {
	begins(t)
	fs := vfs.NewCrashableMem()
	var crowded, met atomic.Int64
	faulty := errorfs.Wrap(renamed{fs, &crowded}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".log") && crowded.Add(-1) >= 0 {
			met.Add(1)
			return syscall.EMFILE
		}
		return nil
	}))
	var lines bytes.Buffer
	s, err := diskstore.Open("store", diskstore.WithFS(faulty), diskstore.WithShards(1), diskstore.WithMemTable(64<<10),
		diskstore.WithPause(time.Millisecond), diskstore.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
	require.NoError(t, err)
	n := 0
	for range 6 {
		crowded.Store(3)
		for range 100 { // a table or two
			require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 1000))
			n++
		}
	}
	require.Negative(t, crowded.Load())
	require.NotZero(t, met.Load())
	has(t, fs, n)
	// It is not for ever.
	crowded.Store(1 << 40)
	for err == nil {
		if err = schedule(s, n+1, fmt.Sprint(n), 1000); err == nil {
			n++
		}
	}
	require.ErrorIs(t, err, diskstore.ErrFailed)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorIs(t, s.Close(), diskstore.ErrFailed)
	require.Contains(t, lines.String(), "too many files are open; trying again")
	crowded.Store(0)
	left := open(t, "store", diskstore.WithFS(faulty))
	v, err := left.Verify(t.Context())
	require.NoError(t, err)
	require.Contains(t, []int64{int64(n), int64(n + 1)}, v.Pending)
	require.NoError(t, left.Close())
	note(t, "too many open files when another file of the log was begun: it was tried again, and nothing was lost")
}
