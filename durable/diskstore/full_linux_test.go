package diskstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// fillUp schedules tasks and cancels some, from several goroutines, until it is killed,
// however full the disk is. It prints what it was acknowledged, and what it is about to
// cancel.
func fillUp(dir, run string) {
	s, err := diskstore.Open(dir, silent)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("open")
	c := durable.New(s)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%s-%d-%d", run, g, i)
				_, err := c.Schedule(context.Background(), durable.Task{Key: key, Handler: "h", Body: make([]byte, 1+rand.IntN(4000))}, durable.After(time.Hour))
				switch {
				case err == nil:
					fmt.Println("there", key)
				case errors.Is(err, store.ErrFull):
					fmt.Println("full")
					time.Sleep(time.Millisecond)
				case errors.Is(err, diskstore.ErrFailed):
					fmt.Println("failed")
					time.Sleep(10 * time.Millisecond)
				default:
					fmt.Println("error", err)
					os.Exit(1)
				}
				if err != nil || i%3 > 0 {
					continue
				}
				fmt.Println("going", key)
				if _, err := c.Cancel(context.Background(), key); err == nil {
					fmt.Println("gone", key)
				}
			}
		})
	}
	all.Wait()
}

// TestFullKill fills a small disk, with tasks and with the file of somebody else, which
// leaves nothing, kills the process with -9 that schedules and cancels tasks, makes room,
// and opens the store again: what was acknowledged is there. On the disk that is still
// full the store opens, or says that there is no room.
func TestFullKill(t *testing.T) {
	begins(t)
	if !long() {
		t.Skip("TICKLESS_CHAOS is not long")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=12m,mode=0700"); err != nil {
		t.Skipf("a small disk cannot be mounted: %v", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) }()
	dir, ballast := filepath.Join(disk, "store"), filepath.Join(disk, "ballast")
	// What each key is: there, gone, or either.
	ledger := make(map[string]string)
	fulls, failures, refused, opened := 0, 0, 0, 0
	const times = 30
	for i := range times {
		p := start(t, "fill", dir, fmt.Sprint(i))
		require.Equal(t, "open", p.says())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for p.lines.Scan() {
				switch word, key, _ := strings.Cut(p.lines.Text(), " "); word {
				case "there", "gone":
					ledger[key] = word
				case "going":
					ledger[key] = "either"
				case "full":
					fulls++
				case "failed":
					failures++
				default:
					t.Error(p.lines.Text())
				}
			}
		}()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		if i%3 > 0 {
			fillWith(t, ballast)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		require.NoError(t, p.cmd.Process.Kill())
		<-over
		require.Error(t, p.cmd.Wait()) // killed
		if s, err := diskstore.Open(dir, silent); err == nil {
			opened++
			_ = s.Close() // the disk may be full of what it writes
		} else {
			refused++
			require.True(t, errors.Is(err, store.ErrFull) || errors.Is(err, syscall.ENOSPC), "%v", err)
			require.NotErrorIs(t, err, diskstore.ErrDamaged)
		}
		if err := os.Remove(ballast); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		s, err := diskstore.Open(dir, silent)
		require.NoError(t, err)
		_, err = s.Verify(t.Context())
		require.NoError(t, err)
		c := durable.New(s)
		for key, state := range ledger {
			_, err := c.Get(t.Context(), key)
			switch state {
			case "there":
				require.NoError(t, err, key)
			case "gone":
				require.ErrorIs(t, err, durable.ErrNotFound, key)
			}
		}
		// There is room for the next one.
		for key, state := range ledger {
			if state != "gone" && rand.IntN(10) > 0 {
				_, err := c.Cancel(t.Context(), key)
				require.NoError(t, err)
				ledger[key] = "gone"
			}
		}
		require.NoError(t, s.Close())
	}
	require.NotZero(t, fulls+failures)
	note(t, "a disk of 12 MB, %d times full of tasks and of another file, the process killed with -9: %d commands refused for want of room, %d after the store had failed; on the full disk it opened %d times and %d times said that there is no room; with room again all of %d tasks were as acknowledged",
		times, fulls, failures, opened, refused, len(ledger))
}

// fillWith writes a file until the disk is full.
func fillWith(t *testing.T, name string) {
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}
