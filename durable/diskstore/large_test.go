package diskstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// TestLarge fills a store with as many tasks of 256 bytes as TICKLESS_LARGE says, due
// over 30 days, kills the process, and opens the store again. It reports what that takes,
// and is for a person to look at: 10 million tasks take some minutes and 5 GB of disk.
func TestLarge(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	if n == 0 {
		t.Skip("TICKLESS_LARGE is not set")
	}
	dir := filepath.Join(t.TempDir(), "store")
	for _, mode := range []string{"fill", "open"} {
		began := time.Now()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TICKLESS_DISKSTORE_CHILD="+dir, "TICKLESS_DISKSTORE_LARGE="+mode)
		cmd.Stderr = os.Stderr
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		for in := bufio.NewScanner(pipe); in.Scan() && in.Text() != "ready"; {
			t.Log(mode + ": " + in.Text())
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		require.NoError(t, err)
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") {
				t.Logf("%s: after %v: %s", mode, time.Since(began).Round(time.Millisecond), strings.TrimSpace(line))
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		var bytes int64
		require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if info, infoErr := d.Info(); infoErr == nil {
				bytes += info.Size()
			}
			return err
		}))
		t.Logf("%s: %d bytes on the disk, %d a task", mode, bytes, bytes/int64(n))
	}
}

// large is the child of TestLarge.
func large(dir, mode string) {
	n, _ := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	began := time.Now()
	s, err := diskstore.Open(dir)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("opened in", time.Since(began))
	c, ctx := durable.New(s), context.Background()
	if mode == "fill" {
		const month = 30 * 24 * time.Hour
		var items []durable.Item
		for i := range n {
			body := slices.Clone(payload)
			for j := 0; j < len(body); j += 8 { // tasks differ
				x := rand.Uint64()
				for k := range 8 {
					body[j+k] = byte(x >> (8 * k))
				}
			}
			items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprintf("order-%016x", rand.Uint64()), Handler: "h", Body: body},
				When: durable.After(time.Hour + rand.N(month))})
			if len(items) == 1000 || i == n-1 {
				if _, err := c.ScheduleBatch(ctx, items); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				items = items[:0]
			}
		}
		fmt.Println("filled in", time.Since(began))
	} else {
		began = time.Now()
		if _, err := c.Schedule(ctx, durable.Task{Key: "now", Handler: "h"}, durable.After(0)); err != nil {
			fmt.Println("error", err)
		}
		r := store.Round{Lease: time.Minute, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}
		a, err := s.Do(ctx, store.ShardOf("now", s.Shards()), store.Stamp{Sender: "large", Number: 1}, r)
		fmt.Println("scheduled and claimed", len(a.Tasks), "in", time.Since(began), err)
	}
	fmt.Println("ready")
	select {}
}

// TestLarge_FinishedInFront reports how long a claim takes when TICKLESS_LARGE tasks were
// finished in front, beside one in a new store, and after the store was opened again.
func TestLarge_FinishedInFront(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	if n == 0 {
		t.Skip("TICKLESS_LARGE is not set")
	}
	n = min(n, 1_000_000)
	number := int64(0)
	claim := func(s *diskstore.Store, key string) time.Duration {
		number++
		_, err := durable.New(s).Schedule(t.Context(), durable.Task{Key: key, Handler: "h"}, durable.After(0))
		require.NoError(t, err)
		r := store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}
		began := time.Now()
		a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "large", Number: number}, r)
		require.NoError(t, err)
		require.Len(t, a.Tasks, 1)
		return time.Since(began)
	}
	median := func(s *diskstore.Store, kind string) time.Duration {
		var all []time.Duration
		for i := range 201 {
			all = append(all, claim(s, fmt.Sprint(kind, i)))
		}
		slices.Sort(all)
		return all[100]
	}
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, diskstore.WithShards(1))
	t.Logf("in a new store: %v", median(s, "new"))
	c := durable.New(s)
	items := make([]durable.Item, 0, 1000)
	for i := range n {
		items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint("first-", i), Handler: "h", Body: payload}, When: durable.After(0)})
		if len(items) == cap(items) || i == n-1 {
			_, err := c.ScheduleBatch(t.Context(), items)
			require.NoError(t, err)
			items = items[:0]
		}
	}
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	w := durable.NewWorker(c)
	w.Handle("h", func(context.Context, durable.Delivery) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	<-done
	cancel()
	require.NoError(t, <-over)
	t.Logf("with %d finished in front: %v", n, median(s, "front"))
	require.NoError(t, s.Close())
	s = open(t, dir)
	t.Logf("opened again, the first: %v", claim(s, "first"))
	t.Logf("opened again: %v", median(s, "again"))
}
