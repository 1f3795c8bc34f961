package diskstore_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
)

// copying opens a store with a task on a disk. The first operation of a kind that has to
// do with the directory of a copy itself calls entered, and waits until free is called.
// Those that look have a look at every operation after that.
func copying(t *testing.T, kind errorfs.OpKind, entered func(), look ...func(errorfs.Op)) (s *diskstore.Store, disk *vfs.MemFS, free func()) {
	disk = vfs.NewCrashableMem()
	release := make(chan struct{})
	free = sync.OnceFunc(func() { close(release) })
	var met atomic.Bool
	s = open(t, "store", diskstore.WithFS(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == kind && strings.HasPrefix(op.Path, "copy") && !strings.Contains(op.Path, "/") && met.CompareAndSwap(false, true) {
			entered()
			<-release
		}
		for _, f := range look {
			f(op)
		}
		return nil
	}))))
	t.Cleanup(free) // before the store is closed
	put(t, s, "k", durable.After(time.Hour))
	return s, disk, free
}

// hasCopy requires that a power cut leaves a copy that is whole, and no half of another.
func hasCopy(t *testing.T, disk *vfs.MemFS) {
	t.Helper()
	names, err := disk.List("/")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"store", "copy"}, names)
	v, err := diskstore.Check(t.Context(), "copy", silent, diskstore.WithFS(disk.CrashClone(vfs.CrashCloneCfg{})))
	require.NoError(t, err)
	require.EqualValues(t, 1, v.Pending)
}

// When its context ends while a copy is made the place is free: what another call puts
// there stays when the disk has answered the first one.
func TestCheckpoint_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, disk, free := copying(t, errorfs.OpMkdirAll, cancel)
	require.ErrorIs(t, s.Checkpoint(ctx, "copy"), context.Canceled)
	require.NoError(t, s.Checkpoint(t.Context(), "copy"))
	free()
	require.NoError(t, s.Close())
	hasCopy(t, disk)
}

// If nobody comes after it there is nothing, also if the context ends when the copy is
// whole and about to get its name.
func TestCheckpoint_CancelledAtTheEnd(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpMkdirAll, errorfs.OpRename} {
		ctx, cancel := context.WithCancel(t.Context())
		s, disk, free := copying(t, kind, cancel)
		require.ErrorIs(t, s.Checkpoint(ctx, "copy"), context.Canceled)
		free()
		require.NoError(t, s.Close())
		names, err := disk.List("/")
		require.NoError(t, err)
		require.Equal(t, []string{"store"}, names)
	}
}

// Of two calls for one directory the first to finish has it.
func TestCheckpoint_TwoAtOnce(t *testing.T) {
	entered := make(chan struct{})
	s, disk, free := copying(t, errorfs.OpMkdirAll, func() { close(entered) })
	slow := make(chan error, 1)
	go func() { slow <- s.Checkpoint(t.Context(), "copy") }()
	<-entered
	require.NoError(t, s.Checkpoint(t.Context(), "copy"))
	free()
	require.ErrorIs(t, <-slow, fs.ErrExist)
	require.ErrorIs(t, s.Checkpoint(t.Context(), "copy"), fs.ErrExist)
	require.NoError(t, s.Close())
	hasCopy(t, disk)
}

// A copy that has its name loses it again if its caller has gone. Another call comes to
// the place when that is decided: before, it would be refused for a copy that goes.
func TestCheckpoint_APlaceIsDecidedBeforeTheNext(t *testing.T) {
	for _, gone := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var s *diskstore.Store
		var disk *vfs.MemFS
		var free func()
		var named, synced atomic.Bool
		entered, left, there := make(chan struct{}), make(chan struct{}), make(chan struct{})
		// locked sees that the place is the first one's: the second one has not come yet.
		locked := func(when string) {
			if !diskstore.Placing(s) {
				t.Errorf("the caller has gone: %v: another call has the place %s", gone, when)
			}
		}
		// meet lets the second one come, until it is about to get its name.
		meet := func() {
			free()
			select {
			case <-there:
			case <-time.After(time.Minute):
				t.Error("the second one does not come")
			}
		}
		s, disk, free = copying(t, errorfs.OpMkdirAll, func() { close(entered) }, func(op errorfs.Op) {
			switch {
			case op.Kind == errorfs.OpRename && strings.HasPrefix(op.Path, "copy.tmp-") && !strings.Contains(op.Path, "/"):
				named.Store(true)
			case !named.Load():
			case op.Kind == errorfs.OpFileSync && op.Path == "." && synced.CompareAndSwap(false, true):
				locked("when the copy has just got its name")
				if gone {
					cancel()
					<-left
				} else {
					meet()
				}
			case op.Kind == errorfs.OpRename && op.Path == "copy":
				locked("when the copy is about to lose its name")
				meet()
			case op.Kind == errorfs.OpRename && strings.HasPrefix(op.Path, "copy.tmp-"): // the marker of the second one
				close(there)
			}
		})
		second := make(chan error, 1)
		go func() { second <- s.Checkpoint(t.Context(), "copy") }()
		<-entered
		err := s.Checkpoint(ctx, "copy")
		close(left)
		if gone {
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, <-second)
		} else {
			require.NoError(t, err)
			require.ErrorIs(t, <-second, fs.ErrExist)
		}
		cancel()
		require.NoError(t, s.Close())
		hasCopy(t, disk)
	}
}
