package diskstore_test

import (
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
)

// slowMarker opens a store whose marker is being written, and is not until free is called.
// From then on f has a look at each operation.
func slowMarker(t *testing.T, f func(op errorfs.Op) error, opts ...diskstore.Option) (s *diskstore.Store, disk *vfs.MemFS, free func()) {
	disk = vfs.NewMem()
	require.NoError(t, open(t, "store", diskstore.WithFS(disk), diskstore.WithShards(1)).Close())
	writing, release := make(chan struct{}), make(chan struct{})
	free = sync.OnceFunc(func() { close(release) })
	var met, opened atomic.Bool
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && strings.HasSuffix(op.Path, "TICKLESS.tmp") && met.CompareAndSwap(false, true) {
			close(writing)
			<-release
		}
		if opened.Load() {
			return f(op)
		}
		return nil
	}))
	s = open(t, "store", append(opts, diskstore.WithFS(fs))...)
	t.Cleanup(free) // before the store is closed
	<-writing
	opened.Store(true)
	return s, disk, free
}

// The directory of a store that has failed is not given back while the marker is being
// written, which would take the place of that of whoever opens it next.
func TestClose_WhileTheMarkerIsWritten(t *testing.T) {
	s, disk, _ := slowMarker(t, func(op errorfs.Op) error {
		if syncsLog(op) {
			return syscall.EIO
		}
		return nil
	}, diskstore.WithPatience(time.Millisecond))
	require.ErrorIs(t, schedule(s, 1, "k", 10), diskstore.ErrFailed)
	require.ErrorIs(t, s.Close(), diskstore.ErrFailed)
	_, err := diskstore.Open("store", silent, diskstore.WithFS(disk))
	require.ErrorIs(t, err, diskstore.ErrLocked)
}

// A marker that the disk is slow to write holds up no sync of WithSync.
func TestWithSync_WhileTheMarkerIsWritten(t *testing.T) {
	synced := make(chan struct{}, 1)
	s, _, free := slowMarker(t, func(op errorfs.Op) error {
		if syncsLog(op) {
			select {
			case synced <- struct{}{}:
			default:
			}
		}
		return nil
	}, diskstore.WithSync(time.Millisecond))
	require.NoError(t, schedule(s, 1, "k", 10))
	select {
	case <-synced:
	case <-time.After(time.Minute):
		t.Error("what was acknowledged is not synced")
	}
	free()
	require.NoError(t, s.Close())
}
