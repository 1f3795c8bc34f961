package diskstore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// A lock that cannot be had for another reason is not one that somebody else has.
func TestOpen_ALockThatCannotBeHad(t *testing.T) {
	for _, cause := range []error{syscall.EROFS, syscall.EIO, syscall.ENOLCK, syscall.EMFILE} {
		_, err := diskstore.Open("store", silent, diskstore.WithFS(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpLock {
				return cause
			}
			return nil
		}))))
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, diskstore.ErrLocked)
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "LOCK"), 0o700))
	_, err := diskstore.Open(dir, silent)
	require.Error(t, err)
	require.NotErrorIs(t, err, diskstore.ErrLocked)
}

// A store stays in its directory when the process goes to another one that has a
// directory of the same name, and when a link to it gets another target.
func TestOpen_TheDirectoryStays(t *testing.T) {
	begins(t)
	here, there := t.TempDir(), t.TempDir()
	for _, dir := range []string{here, there} {
		s, err := diskstore.Open(filepath.Join(dir, "store"), silent, diskstore.WithShards(1))
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	link := filepath.Join(here, "link")
	for i, name := range []string{"store", "link"} {
		require.NoError(t, os.RemoveAll(link))
		if err := os.Symlink("store", link); err != nil {
			t.Skipf("there are no links: %v", err)
		}
		t.Chdir(here)
		s := open(t, name, diskstore.WithMemTable(64<<10))
		t.Chdir(there)
		require.NoError(t, os.Remove(link))
		require.NoError(t, os.Symlink(filepath.Join(there, "store"), link))
		for n := range 200 { // more than a memtable
			require.NoError(t, schedule(s, 200*i+n+1, string(rune('a'+i))+time.Duration(n).String(), 1000))
		}
		require.NoError(t, s.Checkpoint(t.Context(), name+"-copy"))
		require.NoError(t, s.Close())
		for dir, want := range map[string]int64{filepath.Join(here, "store"): int64(200 * (i + 1)), filepath.Join(there, "store"): 0, filepath.Join(there, name+"-copy"): int64(200 * (i + 1))} {
			v, err := diskstore.Check(t.Context(), dir, silent)
			require.NoError(t, err, dir)
			require.Equal(t, want, v.Pending, dir)
		}
	}
	note(t, "the process changed its directory, and a link its target, while the store was open: all went to the directory that was opened")
}

// A directory that was made is there after a power cut, with those on the way to it.
func TestOpen_ADirectoryThatWasMadeStays(t *testing.T) {
	disk := vfs.NewCrashableMem()
	dir := filepath.Join("one", "two", "three", "store")
	s := open(t, dir, diskstore.WithFS(disk))
	put(t, s, "k", durable.After(time.Hour))
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	v, err := diskstore.Check(t.Context(), dir, silent, diskstore.WithFS(left))
	require.NoError(t, err)
	require.EqualValues(t, 1, v.Pending)
}

// A link to nothing is said to be one.
func TestOpen_ALinkToNothing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nothing", link); err != nil {
		t.Skipf("there are no links: %v", err)
	}
	for _, dir := range []string{link, filepath.Join(link, "store")} {
		_, err := diskstore.Open(dir, silent)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "is a link to nothing, which does not exist")
	}
}

// A disk that has nothing but what its making has left there is empty.
func TestOpen_AFreshDisk(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
	_, err := diskstore.Check(t.Context(), dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for range 2 {
		s := open(t, dir)
		put(t, s, "k", durable.After(time.Hour))
		require.NoError(t, s.Close())
	}
}
