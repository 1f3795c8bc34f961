package diskstore_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
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
// new store, and with many callers, unless it is in the last block or two batches.
func TestDamage_Log(t *testing.T) {
	begins(t)
	for _, x := range []struct{ life, callers, tasks int }{{1, 1, 350}, {2, 1, 350}, {2, 50, 2500}} {
		disk := vfs.NewCrashableMem()
		for range x.life - 1 {
			require.NoError(t, open(t, "store", diskstore.WithFS(disk), diskstore.WithShards(1)).Close())
		}
		s := open(t, "store", diskstore.WithFS(disk), diskstore.WithShards(1))
		var all sync.WaitGroup
		for g := range x.callers {
			all.Go(func() {
				for n := range x.tasks / x.callers {
					_, err := durable.New(s).Schedule(t.Context(), durable.Task{Key: fmt.Sprint(g, "-", n), Handler: "h", Body: make([]byte, 200)}, durable.After(time.Hour))
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		left := disk.CrashClone(vfs.CrashCloneCfg{})
		_, b := logOf(t, left)
		require.Greater(t, len(b), 64<<10)
		flips, silent, most := 0, 0, 0
		for at := 0; at < len(b); at += len(b) / 40 {
			flips++
			there, err := flip(t, left, at)
			if err != nil {
				require.ErrorIs(t, err, diskstore.ErrDamaged)
				continue
			}
			if lost := x.tasks - int(there); lost > 0 {
				silent, most = silent+1, max(most, lost)
				if lost > 2*x.callers {
					require.Less(t, len(b)-at, 33<<10, "a bit of byte %d of %d was flipped, and %d tasks are lost", at, len(b), lost)
				}
			}
		}
		note(t, "a bit of the log flipped after a crash, in life %d of a store with %d callers, at %d places in %d kB: %d were not noticed, and %d tasks lost at most", x.life, x.callers, flips, len(b)>>10, silent, most)
	}
}
