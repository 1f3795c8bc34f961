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

// large is the child of TestLarge and TestLarge_FinishedInFront.
func large(dir, mode string) {
	n, _ := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	began := time.Now()
	var opts []diskstore.Option
	if mode == "finish" {
		opts = append(opts, diskstore.WithShards(1))
	}
	s, err := diskstore.Open(dir, opts...)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("opened in", time.Since(began))
	c, ctx := durable.New(s), context.Background()
	switch mode {
	case "claim":
		took, err := claimOne(s)
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("claimed in", took)
	case "finish":
		n := min(n, 1_000_000) / tenths
		if err := finish(ctx, s, n); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(n, "scheduled and finished in", time.Since(began))
	case "fill":
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
	default:
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

// claimOne schedules a task that is due in a store of one shard, and returns how long its
// claim takes.
func claimOne(s *diskstore.Store) (time.Duration, error) {
	key := fmt.Sprintf("claimed-%016x", rand.Uint64())
	if _, err := durable.New(s).Schedule(context.Background(), durable.Task{Key: key, Handler: "h"}, durable.After(0)); err != nil {
		return 0, err
	}
	r := store.Round{Lease: time.Hour, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}
	began := time.Now()
	a, err := s.Do(context.Background(), 0, store.Stamp{Sender: key, Number: 1}, r)
	took := time.Since(began)
	if err == nil && len(a.Tasks) != 1 {
		err = fmt.Errorf("%d tasks were claimed", len(a.Tasks))
	}
	return took, err
}

// timed reports the median of n times.
func timed(t *testing.T, what string, n int, f func() time.Duration) {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = f()
	}
	slices.Sort(all)
	t.Logf("%s: median %v of %d, from %v to %v", what, all[n/2], n, all[0], all[n-1])
}

// killed runs a child with a store in a directory until it is ready, and kills it. It
// returns what it has claimed in.
func killed(t *testing.T, dir, mode string) (claimed time.Duration) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TICKLESS_DISKSTORE_CHILD="+dir, "TICKLESS_DISKSTORE_LARGE="+mode)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for in := bufio.NewScanner(pipe); in.Scan() && in.Text() != "ready"; {
		if text, ok := strings.CutPrefix(in.Text(), "claimed in "); ok {
			claimed, err = time.ParseDuration(text)
			require.NoError(t, err)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return claimed
}

// claims has claims of a store timed: one after the other, and the first ones after it
// was closed and opened again.
func claims(t *testing.T, what, dir string) {
	claim := func(s *diskstore.Store) time.Duration {
		took, err := claimOne(s)
		require.NoError(t, err)
		return took
	}
	s := open(t, dir)
	timed(t, what+", open", 201, func() time.Duration { return claim(s) })
	require.NoError(t, s.Close())
	timed(t, what+", the first after Close", 11, func() time.Duration {
		s := open(t, dir)
		defer s.Close()
		return claim(s)
	})
}

// TestLarge_FinishedInFront reports how long claims take in a new store, and in one in
// which TICKLESS_LARGE tasks, a million at most, were finished in front, by a process
// that is killed after each tenth of them.
func TestLarge_FinishedInFront(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TICKLESS_LARGE"))
	if n == 0 {
		t.Skip("TICKLESS_LARGE is not set")
	}
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, open(t, dir, diskstore.WithShards(1)).Close())
	timed(t, "nothing finished, the first after kill -9", 11, func() time.Duration { return killed(t, dir, "claim") })
	claims(t, "nothing finished", dir)
	dir = filepath.Join(t.TempDir(), "store")
	timed(t, "the first after kill -9 of the process that has finished them", tenths, func() time.Duration {
		killed(t, dir, "finish")
		took := killed(t, dir, "claim")
		t.Log(took)
		return took
	})
	timed(t, "finished, the first after kill -9", 11, func() time.Duration { return killed(t, dir, "claim") })
	claims(t, fmt.Sprintf("%d finished", tenths*(min(n, 1_000_000)/tenths)), dir)
}

// tenths is in how many parts the tasks are finished.
const tenths = 10

// finish has tasks scheduled and run, for TestLarge_FinishedInFront.
func finish(ctx context.Context, s *diskstore.Store, n int) error {
	c := durable.New(s)
	items := make([]durable.Item, 0, 1000)
	for i := range n {
		items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprintf("%016x", rand.Uint64()), Handler: "h", Body: payload}, When: durable.After(0)})
		if len(items) == cap(items) || i == n-1 {
			if _, err := c.ScheduleBatch(ctx, items); err != nil {
				return err
			}
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
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	<-done
	cancel()
	return <-over
}
