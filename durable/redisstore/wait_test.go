package redisstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A worker pops the backups of many wake-ups. It schedules only one call of wake for each
// shard.
func TestWait_ManyBackupsOfAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var w *waiter
		var woken [2]int
		during := false
		w = newWaiter(ctx, 2, func(index int) {
			woken[index]++
			if during {
				during = false
				w.callWakeLater(&shard{index: index})
			}
		})
		settle := func() [2]int {
			time.Sleep(10 * backupDelay)
			synctest.Wait()
			return woken
		}
		for range 1000 {
			w.callWakeLater(&shard{index: 0})
			w.callWakeLater(&shard{index: 1})
		}
		require.Equal(t, [2]int{1, 1}, settle())
		w.callWakeLater(&shard{index: 1})
		require.Equal(t, [2]int{1, 2}, settle(), "a later backup needs another call")
		during = true
		w.callWakeLater(&shard{index: 0})
		require.Equal(t, [2]int{3, 2}, settle(), "a backup that comes while wake runs needs another call")
		w.callWakeLater(&shard{index: 0})
		cancel()
		w.goroutines.Wait()
		require.Equal(t, [2]int{3, 2}, woken)
	})
}

// A worker that pops the backup checks the shard within half a second, including the
// random delay.
func TestWait_ABackupIsHalfASecondLateAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var woken time.Time
		w := newWaiter(ctx, 1, func(int) { woken = time.Now() })
		for range 1000 {
			began := time.Now()
			w.callWakeLater(&shard{index: 0})
			time.Sleep(time.Minute)
			synctest.Wait()
			require.True(t, woken.After(began))
			require.LessOrEqual(t, woken.Sub(began), 500*time.Millisecond)
		}
	})
}
