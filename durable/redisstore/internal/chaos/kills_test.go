//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// busyDisk writes and syncs files in dir until stop is called, so that the server's syncs
// are slow. stop returns the MB written.
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

// A server with a busy disk is killed ten times while tasks are scheduled and run. With
// appendfsync always, nothing is lost. With everysec, a kill loses the changes of up to
// two seconds.
func TestFault_ServerKilledTenTimes(t *testing.T) {
	const runs, times = 10, 10
	for _, fsync := range []string{"everysec", "always"} {
		t.Run("AOF"+fsync, func(t *testing.T) {
			long(t)
			var all tally
			defer func() {
				t.Logf("%d runs, in each of which redis-server is killed with -9 %d times while tasks are scheduled and run, the disk kept busy; lost in each: %v; %d calls of ScheduleBatch failed and were repeated: %v",
					len(all.lost), times, all.lost, all.failures, all.n)
			}()
			for run := range runs {
				t.Run(strconv.Itoa(run+1), func(t *testing.T) {
					x := killAgain(t, fsync, times)
					all.add(x)
					require.Equal(t, times, x.kills)
				})
			}
		})
	}
}

// killAgain is one of the ten runs of TestFault_ServerKilledTenTimes.
func killAgain(t *testing.T, fsync string, times int) *trial {
	x, s := onServer(t, "--appendonly", "yes", "--appendfsync", fsync)
	x.torn = true
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
	for range times {
		time.Sleep(300*time.Millisecond + rand.N(time.Second))
		before := time.Now()
		s.Kill()
		x.kills++
		if fsync == "everysec" {
			x.doubtful = append(x.doubtful, span{before.Add(-2 * time.Second), time.Now()})
		}
		time.Sleep(100 * time.Millisecond)
		s.Restart()
	}
	cancel()
	all.Wait()
	written := stop()
	x.note("the disk kept busy with %d MB", written)
	x.done(60 * time.Second)
	return x
}

// A tally adds up the counters of the ten runs.
type tally struct {
	lost     []int // of each run
	failures int
	n        numbers
}

func (a *tally) add(x *trial) {
	a.lost = append(a.lost, x.n.lost)
	a.failures += x.failures
	a.n.acknowledged += x.n.acknowledged
	a.n.lost += x.n.lost
	a.n.duplicates += x.n.duplicates
	a.n.early += x.n.early
	a.n.crashed += x.n.crashed
	a.n.dead += x.n.dead
	a.n.repaired += x.n.repaired
	a.n.late, a.n.worst = max(a.n.late, x.n.late), max(a.n.worst, x.n.worst)
}
