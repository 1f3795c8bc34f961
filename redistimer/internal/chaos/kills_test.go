//go:build unix

package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// busyDisk writes to the disk of a directory and syncs, again and again, so that
// other syncs there take long. It returns how much it has written, in MB.
func busyDisk(t *testing.T, dir string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for _, name := range []string{"busy-a", "busy-b"} {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		all.Go(func() {
			defer f.Close()
			piece := make([]byte, 8<<20)
			for at := int64(0); ctx.Err() == nil; at = (at + int64(len(piece))) % (256 << 20) {
				if _, err := f.WriteAt(piece, at); err != nil {
					t.Error(err)
					return
				}
				if err := f.Sync(); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				written += 8
				mu.Unlock()
			}
		})
	}
	return func() int {
		cancel()
		all.Wait()
		return written
	}
}

// A server is killed ten times while tasks are scheduled and run, and its disk is
// busy. Nothing is lost with appendfsync always. With everysec Redis writes to its
// log up to two seconds late while a sync takes long.
func TestFault_ServerKilledTenTimes(t *testing.T) {
	const times = 10
	for _, fsync := range []string{"everysec", "always"} {
		t.Run("AOF"+fsync, func(t *testing.T) {
			long(t)
			x, s := onServer(t, "--appendonly", "yes", "--appendfsync", fsync)
			x.torn = true
			if fsync == "everysec" {
				x.window = 2 * time.Second
			}
			stop := busyDisk(t, s.Dir)
			x.start(x.order)
			x.start(x.order)
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(context.Background())
			for g := range 4 {
				all.Go(func() {
					for i := g * 1_000_000; ctx.Err() == nil; i += 20 {
						x.schedule(i, 20, soon(time.Second), "")
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
			late := 0
			for range times {
				time.Sleep(1500 * time.Millisecond)
				late += strings.Count(s.Output(), "is taking too long")
				s.Kill()
				x.kills = append(x.kills, time.Now())
				time.Sleep(100 * time.Millisecond)
				s.Restart()
			}
			cancel()
			all.Wait()
			written := stop()
			x.done(60 * time.Second)
			x.note("redis-server killed with -9 %d times while tasks were scheduled and run, the disk kept busy with %d MB; %d times it said that a sync takes too long; %d calls of ScheduleBatch failed and were repeated",
				times, written, late, x.failures)
			require.Len(t, x.kills, times)
		})
	}
}
