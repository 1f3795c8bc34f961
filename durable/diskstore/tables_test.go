package diskstore_test

import (
	"math"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
)

// killedAtManifest returns what a process has left that was killed when it had written a
// manifest for the n-th time, and not synced that. If it wrote fewer, it came to its end.
func killedAtManifest(t *testing.T, n int) (x *script, disk *vfs.MemFS, killed bool) {
	x = newScript(t)
	disk = vfs.NewCrashableMem()
	var mu sync.Mutex
	opened := false
	syncs := 0
	s, err := x.open(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if opened && op.Kind == errorfs.OpFileSync && strings.HasPrefix(filepath.Base(op.Path), "MANIFEST-") {
			syncs++
		}
		if syncs >= n && mutates(op) { // it does nothing any more
			return syscall.EIO
		}
		return nil
	})))
	require.NoError(t, err)
	mu.Lock()
	opened = true
	mu.Unlock()
	for range 150 {
		if err := x.step(s); err != nil {
			require.ErrorIs(t, err, diskstore.ErrFailed)
			break
		}
	}
	_ = s.Close()
	mu.Lock()
	defer mu.Unlock()
	return x, disk, syncs >= n
}

// What a process that is killed has written of a manifest, and not synced, may be gone
// after a power cut. So the tables that the next Open removes, since nobody needs them any
// more, must not be needed by what of the manifest is on the disk.
func TestCrash_ManifestThatWasNotSynced(t *testing.T) {
	begins(t)
	whole, _, killed := killedAtManifest(t, math.MaxInt)
	require.False(t, killed)
	kills, needed, opened := 0, 0, 0
	for n := 1; ; n++ {
		x, disk, killed := killedAtManifest(t, n)
		if !killed {
			break
		}
		kills++
		x.states = whole.states // also what the command came to that it was killed in
		unsynced := disk.CrashClone(vfs.CrashCloneCfg{})
		var mu sync.Mutex
		var removed []string
		var crashes []*vfs.MemFS
		created := false
		s, err := x.open(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			created = created || op.Kind == errorfs.OpCreate
			switch {
			case op.Kind == errorfs.OpRemove && !created:
				removed = append(removed, op.Path)
			case len(removed) > 0 && mutates(op):
				crashes = append(crashes, disk.CrashClone(vfs.CrashCloneCfg{}))
			}
			return nil
		})))
		require.NoError(t, err)
		mu.Lock()
		some := crashes
		mu.Unlock()
		require.NoError(t, s.Close())
		for _, fs := range some {
			x.recovers(fs, x.acked, "a power cut after the Open that follows a kill")
			opened++
		}
		// Without the Open's sync a power cut would have left a store that is damaged.
		for _, name := range removed {
			require.Equal(t, ".sst", filepath.Ext(name))
			_ = unsynced.Remove(name)
		}
		if s, err := x.open(unsynced); err != nil {
			require.ErrorIs(t, err, diskstore.ErrDamaged)
			needed++
		} else {
			require.NoError(t, s.Close())
		}
	}
	require.NotZero(t, needed)
	note(t, "a process was killed each of %d times when it had written a manifest and not synced it, and the power cut during the Open that followed, which removed tables that the manifest on the disk needed %d times: %d stores opened, nothing lost", kills, needed, opened)
}
