package diskstore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// A directory has one Store, by whichever of its names it is opened.
func TestOpen_OneStoreADirectory(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	dir := filepath.Join(base, "store")
	s, err := diskstore.Open(dir, silent)
	require.NoError(t, err)
	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, name := range []string{dir, link, "store", dir + "/../store"} {
		_, err := diskstore.Open(name, silent)
		require.ErrorIs(t, err, diskstore.ErrLocked, name)
		_, err = diskstore.Check(t.Context(), name, silent)
		require.ErrorIs(t, err, diskstore.ErrLocked, name)
	}
	// By another name that it gets while it is open, too.
	require.NoError(t, os.Rename(dir, filepath.Join(base, "moved")))
	_, err = diskstore.Open("moved", silent)
	require.ErrorIs(t, err, diskstore.ErrLocked)
	require.NoError(t, os.Rename(filepath.Join(base, "moved"), dir))
	require.NoError(t, s.Close())
	s, err = diskstore.Open(link, silent)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestCheck_MakesNoStore(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "none")} {
		_, err := diskstore.Check(t.Context(), name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

// What an Open that failed has left is no store. Open makes one of it.
func TestCheck_WhatAnOpenHasLeft(t *testing.T) {
	_, err := diskstore.Check(t.Context(), filepath.Join(t.TempDir(), "none"), silent)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, left := range [][]string{{"LOCK"}, {"LOCK", "TICKLESS.tmp"}} {
		dir := t.TempDir()
		for _, name := range left {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		_, err := diskstore.Check(t.Context(), dir, silent)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoFileExists(t, filepath.Join(dir, "TICKLESS"))
		there, err := diskstore.Exists(dir)
		require.NoError(t, err)
		require.False(t, there)
		require.NoError(t, open(t, dir).Close())
		_, err = diskstore.Check(t.Context(), dir, silent)
		require.NoError(t, err)
		there, err = diskstore.Exists(dir)
		require.NoError(t, err)
		require.True(t, there)
	}
}

// An Open that fails between its marker and the database has left no store either.
func TestCheck_WhatWasBegun(t *testing.T) {
	disk := vfs.NewMem()
	full := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".log") {
			return syscall.ENOSPC
		}
		return nil
	}))
	_, err := diskstore.Open("store", diskstore.WithFS(full), silent)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = disk.Stat("store/TICKLESS")
	require.NoError(t, err)
	_, err = diskstore.Check(t.Context(), "store", diskstore.WithFS(disk), silent)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, open(t, "store", diskstore.WithFS(disk)).Close())
	_, err = diskstore.Check(t.Context(), "store", diskstore.WithFS(disk), silent)
	require.NoError(t, err)
}

// schedule schedules one task.
func schedule(s *diskstore.Store, number int, id string, bytes int) error {
	c := store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(time.Hour),
		Task: store.Task{ID: id, Handler: "h", Record: make([]byte, bytes)}}}}
	_, err := s.Change(context.Background(), 0, store.Stamp{Sender: "s", Number: int64(number)}, c)
	return err
}

// fill schedules tasks until an error.
func fill(s *diskstore.Store, tasks int) error {
	for n := range tasks {
		if err := schedule(s, n+1, fmt.Sprint(n), 1000); err != nil {
			return err
		}
	}
	return nil
}

// Open on a disk that is full says so, rather than try until it is not.
func TestOpen_FullDisk(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s, err := diskstore.Open("store", diskstore.WithFS(disk), diskstore.WithShards(1), silent)
	require.NoError(t, err)
	require.NoError(t, fill(s, 20))
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())

	var full atomic.Bool
	full.Store(true)
	faulty := errorfs.Wrap(crashed, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}))
	_, err = diskstore.Open("store", diskstore.WithFS(faulty), silent)
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorIs(t, err, syscall.ENOSPC)
	full.Store(false)
	s, err = diskstore.Open("store", diskstore.WithFS(faulty), silent)
	require.NoError(t, err)
	v, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 20, v.Pending)
	require.NoError(t, s.Close())
}

// smallDisk is a file system that says how much room it has left of its size.
type smallDisk struct {
	vfs.FS
	size, used atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	size, used := d.size.Load(), d.used.Load()
	return vfs.DiskUsage{AvailBytes: size - min(size, used), TotalBytes: size, UsedBytes: used}, nil
}

// New tasks are refused before a small disk is full, however fast they come.
func TestRoom_SmallDisk(t *testing.T) {
	d := &smallDisk{}
	d.size.Store(8 << 20)
	var written atomic.Uint64
	d.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			d.used.Store(written.Add(4 << 10)) // as if each write took a block
		}
		return nil
	}))
	s, err := diskstore.Open("store", diskstore.WithFS(d), diskstore.WithShards(1), silent)
	require.NoError(t, err)
	for n := 1; err == nil; n++ {
		err = schedule(s, n, "a", 3000)
		require.Less(t, d.used.Load(), d.size.Load(), "it was full before a task was refused")
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.NoError(t, s.Close())
}

// A table that was cut, or has other bytes, is damaged, as is a directory that lacks a
// file. Open leaves nothing running.
func TestOpen_DamageHasOneError(t *testing.T) {
	dir := t.TempDir()
	damage := []struct {
		what, files string
		do          func(name string) error
	}{
		{"cut", "*.sst", func(name string) error { return os.Truncate(name, 100) }},
		{"overwritten", "*.sst", func(name string) error { return overwrite(name, 20) }},
		{"removed", "*.sst", os.Remove},
		{"overwritten", "MANIFEST-*", func(name string) error { return overwrite(name, 20) }},
		{"removed", "marker.format-version.*", os.Remove},
	}
	for i, x := range damage {
		t.Run(x.what+" "+x.files, func(t *testing.T) {
			dir := filepath.Join(dir, fmt.Sprint(i))
			s, err := diskstore.Open(dir, diskstore.WithShards(1), silent)
			require.NoError(t, err)
			require.NoError(t, fill(s, 20))
			require.NoError(t, s.Close())
			names, err := filepath.Glob(filepath.Join(dir, x.files))
			require.NoError(t, err)
			require.NotEmpty(t, names)
			for _, name := range names {
				require.NoError(t, x.do(name))
			}
			before := goleak.IgnoreCurrent()
			s, err = diskstore.Open(dir, silent)
			if err == nil {
				err = errors.Join(errors.New("opened"), s.Close())
			}
			require.ErrorIs(t, err, diskstore.ErrDamaged)
			require.NoError(t, goleak.Find(before))
		})
	}
}

// A database that a newer version of Pebble has made its own is not damaged.
func TestOpen_ANewerDatabase(t *testing.T) {
	disk := vfs.NewMem()
	require.NoError(t, open(t, "store", diskstore.WithFS(disk)).Close())
	names, err := disk.List("store")
	require.NoError(t, err)
	renamed := 0
	for _, name := range names {
		if strings.HasPrefix(name, "marker.format-version.") {
			newer := name[:strings.LastIndex(name, ".")] + ".999"
			require.NoError(t, disk.Rename("store/"+name, "store/"+newer))
			renamed++
		}
	}
	require.NotZero(t, renamed)
	_, err = diskstore.Open("store", silent, diskstore.WithFS(disk))
	require.ErrorIs(t, err, store.ErrSchema)
	require.NotErrorIs(t, err, diskstore.ErrDamaged)
	_, err = diskstore.Check(t.Context(), "store", silent, diskstore.WithFS(disk))
	require.ErrorIs(t, err, store.ErrSchema)
}

// overwrite has a file begin with zeros.
func overwrite(name string, bytes int) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Close())
}
