package diskstore_test

import (
	"fmt"
	"math/rand/v2"
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

// crashed returns a function that makes what a crash has left of a store, each time
// again, with work in the log that no table has.
func crashed(t *testing.T) (*script, func() *vfs.MemFS) {
	x := newScript(t, diskstore.WithPause(time.Millisecond))
	disk := vfs.NewCrashableMem()
	s, err := x.open(disk)
	require.NoError(t, err)
	for range 60 {
		require.NoError(t, x.step(s))
	}
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	return x, func() *vfs.MemFS { return left.CrashClone(vfs.CrashCloneCfg{}) }
}

// TestOpen_CrashAgain crashes the disk at each operation of Open, which reads what a
// crash has left, and keeps none, half and all of what was not synced.
func TestOpen_CrashAgain(t *testing.T) {
	begins(t)
	every := 1
	if testing.Short() {
		every = 37
	}
	x, left := crashed(t)
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(1, 2))
	disk := left()
	crashes := map[string]*vfs.MemFS{}
	ops := 0
	s, err := x.open(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if !mutates(op) {
			return nil
		}
		if ops++; ops%every != 0 {
			return nil
		}
		for i, kept := range []int{0, 50, 50, 50, 100} {
			crashes[fmt.Sprintf("crash %d before operation %d of Open (%v %s), %d%% kept", i, ops, op.Kind, op.Path, kept)] =
				disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(rng.Uint64(), 0))})
		}
		return nil
	})))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	mu.Lock()
	defer mu.Unlock()
	for what, fs := range crashes {
		x.recovers(fs, x.acked, what)
	}
	note(t, "the disk crashed again, before each of %d operations (every %d.) of the Open that followed a crash, and of its Close: %d stores opened, nothing lost", ops, every, len(crashes))
}

// TestOpen_Failure has each operation of Open fail, once or from then on. When it can
// work again nothing is lost, and no store is said to be damaged.
func TestOpen_Failure(t *testing.T) {
	begins(t)
	every := 5
	switch {
	case testing.Short():
		every = 163
	case long():
		every = 1
	}
	x, left := crashed(t)
	runs := 0
	for _, cause := range []error{syscall.EIO, syscall.EMFILE} {
		for _, forEver := range []bool{false, true} {
			more := true
			for n := 1 + runs%every; more; n += every {
				disk := left()
				var mu sync.Mutex
				ops, over, what := 0, false, ""
				fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
					mu.Lock()
					defer mu.Unlock()
					if ops++; over || ops < n || ops > n && !forEver || !fails(op, cause) {
						return nil
					}
					if what == "" {
						what = fmt.Sprintf("%v at operation %d of Open, %v %s, for ever %v", cause, n, op.Kind, op.Path, forEver)
					}
					return cause
				}))
				s, err := x.open(fs)
				if err == nil {
					_ = s.Close() // it may fail too
				} else {
					require.ErrorIs(t, err, cause, what)
				}
				mu.Lock()
				over, more = true, ops >= n
				mu.Unlock()
				if what != "" {
					runs++
					x.recovers(disk.CrashClone(vfs.CrashCloneCfg{}), x.acked, what)
					x.recovers(fs, x.acked, what)
				}
			}
		}
	}
	note(t, "each operation (every %d.) of an Open that follows a crash failed, once or for ever, with EIO or EMFILE: %d runs; when it worked again nothing was lost", every, runs)
}

// An Open that has written all that was in the log to tables, and cannot begin another
// one, waits for a moment, and then leaves a store that can be opened.
func TestOpen_NoDescriptorForTheLog(t *testing.T) {
	for _, forEver := range []bool{false, true} {
		x, left := crashed(t)
		tries := 0
		fs := errorfs.Wrap(left(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpCreate || !strings.HasSuffix(op.Path, ".log") || !forEver && tries == 2 {
				return nil
			}
			tries++
			return syscall.EMFILE
		}))
		s, err := x.open(fs)
		if forEver {
			require.ErrorIs(t, err, syscall.EMFILE)
			forEver, tries = false, 2
			x.recovers(fs, x.acked, "after an Open that failed")
		} else {
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		require.Equal(t, 2, tries)
	}
}

// fails reports whether an operation can have an error.
func fails(op errorfs.Op, cause error) bool {
	switch op.Kind {
	case errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpLock:
		return true
	case errorfs.OpFileClose:
		return false
	}
	return cause != syscall.EMFILE
}

// Close ends when no table can be made because too many files are open. What the log has
// is there when the store is opened again.
func TestClose_TooManyOpenFiles(t *testing.T) {
	var crowded atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if crowded.Load() && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EMFILE
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1), diskstore.WithPause(time.Millisecond))
	require.NoError(t, fill(s, 20))
	crowded.Store(true)
	require.NoError(t, s.Close())
	crowded.Store(false)
	v, err := diskstore.Check(t.Context(), "store", silent, diskstore.WithFS(fs))
	require.NoError(t, err)
	require.EqualValues(t, 20, v.Pending)
}
