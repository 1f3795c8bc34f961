package diskstore_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
)

// logOf returns the newest file of the log, and what is in it.
func logOf(t *testing.T, disk vfs.FS) (name string, b []byte) {
	names, err := disk.List("store")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	name = "store/" + slices.Max(names)
	f, err := disk.Open(name)
	require.NoError(t, err)
	b, err = io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return name, b
}

// flip opens what a crash has left after a bit of the newest file of the log was flipped,
// and returns how many tasks there are, or an error.
func flip(t *testing.T, left *vfs.MemFS, at int) (int64, error) {
	disk := left.CrashClone(vfs.CrashCloneCfg{})
	name, b := logOf(t, disk)
	b[at] ^= 1 << (at % 8)
	f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	v, err := diskstore.Check(t.Context(), "store", silent, diskstore.WithFS(disk))
	return v.Pending, err
}

// One bit that is flipped in the log of a crash is noticed, also in the first log of a
// new store, unless it is near the end, where a crash may have cut it.
func TestDamage_Log(t *testing.T) {
	const tasks, end = 350, 40 << 10
	for life := 1; life <= 2; life++ {
		disk := vfs.NewCrashableMem()
		for range life - 1 {
			require.NoError(t, open(t, "store", diskstore.WithFS(disk), diskstore.WithShards(1)).Close())
		}
		s := open(t, "store", diskstore.WithFS(disk), diskstore.WithShards(1))
		for n := range tasks {
			require.NoError(t, schedule(s, n+1, fmt.Sprint(n), 300))
		}
		left := disk.CrashClone(vfs.CrashCloneCfg{})
		_, b := logOf(t, left)
		require.Greater(t, len(b), 2*end)
		flips, silent, furthest := 0, 0, 0
		for at := 0; at < len(b); at += len(b) / 40 {
			flips++
			switch there, err := flip(t, left, at); {
			case err != nil:
				require.ErrorIs(t, err, diskstore.ErrDamaged)
			case there < tasks:
				silent, furthest = silent+1, max(furthest, len(b)-at)
				require.Less(t, len(b)-at, end, "life %d: a bit of byte %d of %d was flipped, and %d tasks are lost", life, at, len(b), tasks-there)
			}
		}
		note(t, "a bit of the log flipped after a crash, in life %d of a store, at %d places in %d kB: %d were not noticed, at most %d bytes from the end", life, flips, len(b)>>10, silent, furthest)
	}
}
