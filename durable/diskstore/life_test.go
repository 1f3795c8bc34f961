package diskstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

func open(t *testing.T, dir string, opts ...diskstore.Option) *diskstore.Store {
	s, err := diskstore.Open(dir, append(opts, silent)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOpen_ALockedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	_, err := diskstore.Open(dir)
	require.ErrorIs(t, err, diskstore.ErrLocked)
	require.NoError(t, s.Close())
	require.NoError(t, open(t, dir).Close())
}

func TestOpen_AnotherVersionOrNumberOfShards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, open(t, dir, diskstore.WithShards(8)).Close())
	_, err := diskstore.Open(dir, diskstore.WithShards(4))
	require.ErrorIs(t, err, store.ErrSchema)
	s := open(t, dir)
	require.Equal(t, 8, s.Shards())
	require.NoError(t, s.Close())
	require.NoError(t, diskstore.WriteNewerMarker(dir))
	_, err = diskstore.Open(dir)
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorIs(t, err, store.ErrUnfit)
}

func TestOpen_WhatIsNoStore(t *testing.T) {
	_, err := diskstore.Open("")
	require.Error(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	_, err = diskstore.Open(dir)
	require.ErrorIs(t, err, diskstore.ErrForeign)
	_, err = diskstore.Open(file)
	require.Error(t, err)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
}

// Close leaves nothing running.
func TestClose_LeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, opts := range [][]diskstore.Option{nil, {diskstore.WithSync(time.Second)}} {
		s := open(t, filepath.Join(t.TempDir(), "store"), opts...)
		put(t, s, "k", durable.After(time.Hour))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "s", Number: 1}, store.Command{Op: store.Pause})
		require.ErrorIs(t, err, store.ErrClosed)
	}
}

func put(t *testing.T, s *diskstore.Store, key string, when durable.When) {
	_, err := durable.New(s).Schedule(t.Context(), durable.Task{Key: key, Handler: "h"}, when)
	require.NoError(t, err)
}

// While nothing happens nothing is asked of the disk.
func TestIdle(t *testing.T) {
	var ops atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(errorfs.Op) error {
		ops.Add(1)
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithLogAge(10*time.Millisecond))
	c := durable.New(s)
	w := durable.NewWorker(c)
	ran := make(chan struct{}, 1)
	w.Handle("h", func(context.Context, durable.Delivery) error { ran <- struct{}{}; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	put(t, s, "far", durable.After(10*24*time.Hour))
	put(t, s, "now", durable.After(0))
	<-ran
	require.Eventually(t, func() bool { return w.Stats().Done == 1 }, time.Minute, time.Millisecond)
	// The worker asks what comes next, and the log's age is looked at once more, whenever
	// the machine has time for that. Then there is nothing.
	end := time.Now().Add(time.Minute)
	for before := int64(-1); before != ops.Load(); time.Sleep(500 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "operations on the disk in each half of a second")
		before = ops.Load()
	}
	cancel()
	require.NoError(t, <-over)
}

// A disk that is nearly full takes no new tasks, and those that there are come to their
// end. When there is room again so there is for tasks.
func TestFull(t *testing.T) {
	begins(t)
	fs := vfs.NewMem()
	usage := func(left uint64) { fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: left, TotalBytes: 1 << 40}) }
	usage(1 << 39)
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(1))
	put(t, s, "k", durable.After(0))
	usage(1 << 20)
	diskstore.LookForRoom(s)
	c := durable.New(s)
	_, err := c.Schedule(t.Context(), durable.Task{Key: "other", Handler: "h"}, durable.After(0))
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorIs(t, err, store.ErrNotDone)
	h, err := s.Check(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, h.Warnings)
	out, err := c.Cancel(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, durable.Removed, out)
	usage(1 << 39)
	diskstore.LookForRoom(s)
	put(t, s, "other", durable.After(0))
	note(t, "the disk nearly full: new tasks are refused, tasks can be cancelled, and there is room again")
}

// A copy that is taken while tasks are scheduled has what was acknowledged before.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "store"))
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_, _ = durable.New(s).Schedule(context.Background(), durable.Task{Key: fmt.Sprint("beside", i), Handler: "h"}, durable.After(time.Hour))
			}
		}
	}()
	for i := range 100 {
		put(t, s, fmt.Sprint("before", i), durable.After(time.Hour))
	}
	require.NoError(t, s.Checkpoint(t.Context(), filepath.Join(dir, "copy")))
	close(stop)
	<-over
	require.Error(t, s.Checkpoint(t.Context(), filepath.Join(dir, "copy")), "there is one already")
	require.Error(t, s.Checkpoint(t.Context(), filepath.Join(dir, "store", "copy")))
	put(t, s, "after", durable.After(time.Hour))
	x, err := diskstore.Check(t.Context(), filepath.Join(dir, "copy"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, x.Pending, int64(100))
	copied := open(t, filepath.Join(dir, "copy"))
	for i := range 100 {
		_, err := durable.New(copied).Get(t.Context(), fmt.Sprint("before", i))
		require.NoError(t, err)
	}
	_, err = durable.New(copied).Get(t.Context(), "after")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// With WithSync a task is acknowledged before the sync, which follows.
func TestWithSync(t *testing.T) {
	disk := vfs.NewCrashableMem()
	// kept is whether a power cut at this moment leaves the task.
	kept := func() bool {
		left := open(t, "store", diskstore.WithFS(disk.CrashClone(vfs.CrashCloneCfg{})))
		_, err := durable.New(left).Get(t.Context(), "k")
		require.NoError(t, left.Close())
		if err != nil {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
		return err == nil
	}
	s := open(t, "store", diskstore.WithFS(disk), diskstore.WithSync(time.Minute))
	put(t, s, "k", durable.After(time.Hour))
	require.False(t, kept(), "acknowledged before the sync")
	require.NoError(t, s.Close())
	require.True(t, kept(), "Close syncs")

	disk = vfs.NewCrashableMem()
	s = open(t, "store", diskstore.WithFS(disk), diskstore.WithSync(10*time.Millisecond))
	put(t, s, "k", durable.After(time.Hour))
	for !kept() {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, s.Close())
}

// A wall clock that was set forward is a warning, and one that was set back is nothing.
func TestClock(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := timertest.NewClock(begin)
	s := open(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithClock(clk))
	warnings := func() int {
		now, err := s.Now(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, store.TimeOf(begin), now)
		h, err := s.Check(t.Context())
		require.NoError(t, err)
		return len(h.Warnings)
	}
	require.Zero(t, warnings())
	clk.SetWall(begin.Add(-time.Hour))
	require.Zero(t, warnings())
	clk.SetWall(begin.Add(diskstore.MaxClockStep + time.Second))
	require.Equal(t, 1, warnings())
	clk.SetWall(begin)
	require.Zero(t, warnings())
}

// Check looks at the clock also when nothing happens.
func TestClock_Idle(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := timertest.NewClock(begin)
	s := open(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithClock(clk))
	warned := func() bool {
		h, err := s.Check(t.Context())
		require.NoError(t, err)
		return strings.Contains(fmt.Sprint(h.Warnings), "set forward by 2h0m0s")
	}
	require.False(t, warned())
	clk.SetWall(begin.Add(2 * time.Hour))
	require.True(t, warned())
	clk.SetWall(begin)
	require.False(t, warned())
}

// What WithSync may lose is said as it is: the sync itself takes time.
func TestWithSync_IsSaid(t *testing.T) {
	s := open(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithSync(time.Second))
	h, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"what was acknowledged within 1s, and the time that a sync takes, before a crash may be lost"}, h.Warnings)
}

// After the clock was set back, and the store opened again, a lease ends in time, and
// tokens go on.
func TestClock_SetBackWhileClosed(t *testing.T) {
	fs := vfs.NewMem()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := timertest.NewClock(begin)
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithClock(clk), diskstore.WithShards(1))
	put(t, s, "k", durable.After(0))
	r := store.Round{Lease: time.Minute, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}
	first, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 1}, r)
	require.NoError(t, err)
	require.Len(t, first.Tasks, 1)
	require.NoError(t, s.Close())
	clk.SetWall(begin.Add(-24 * time.Hour))
	s = open(t, "store", diskstore.WithFS(fs), diskstore.WithClock(clk))
	a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 2}, r)
	require.NoError(t, err)
	require.Empty(t, a.Tasks)
	require.Equal(t, time.Minute, a.Next)
	clk.Advance(time.Minute)
	a, err = s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 3}, r)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)
	require.Greater(t, a.Tasks[0].Token, first.Tasks[0].Token)
}

// If the clock was set back while the store was closed the log and Check say so, until it
// has caught up.
func TestClock_SetBackIsSaid(t *testing.T) {
	begin := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		by   time.Duration
		said bool
	}{{diskstore.MaxClockStep, false}, {24 * time.Hour, true}} {
		fs, clk := vfs.NewMem(), timertest.NewClock(begin)
		s := open(t, "store", diskstore.WithFS(fs), diskstore.WithClock(clk), diskstore.WithShards(2))
		put(t, s, "k", durable.After(time.Hour))
		require.NoError(t, s.Close())
		clk.SetWall(begin.Add(-x.by))
		var lines bytes.Buffer
		s, err := diskstore.Open("store", diskstore.WithFS(fs), diskstore.WithClock(clk),
			diskstore.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
		require.NoError(t, err)
		require.Equal(t, x.said, strings.Contains(lines.String(), "set back"), lines.String())
		warned := func() bool {
			h, err := s.Check(t.Context())
			require.NoError(t, err)
			return strings.Contains(fmt.Sprint(h.Warnings), "set back by 24h0m0s")
		}
		require.Equal(t, x.said, warned())
		clk.Advance(x.by)
		require.False(t, warned())
		require.NoError(t, s.Close())
	}
}

// A store keeps times to the end of 2199. Where its clock comes near to that it says so, and
// gives no lease that cannot end.
func TestClock_EndOfTime(t *testing.T) {
	fs := vfs.NewMem()
	clk := timertest.NewClock(time.Date(2199, 12, 30, 23, 59, 59, 0, time.UTC))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithClock(clk), diskstore.WithShards(1))
	put(t, s, "k", durable.After(0))
	r := store.Round{Lease: 3 * time.Second, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}}
	a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: 1}, r)
	require.NoError(t, err)
	require.Len(t, a.Tasks, 1)
	for i, pass := range []time.Duration{time.Second, 24 * time.Hour, 78 * 365 * 24 * time.Hour} {
		clk.Advance(pass)
		_, err = s.Do(t.Context(), 0, store.Stamp{Sender: "w", Number: int64(i + 2)}, r)
		require.ErrorIs(t, err, store.ErrUnfit)
		require.ErrorIs(t, err, store.ErrNotDone)
		_, err = durable.New(s).Schedule(t.Context(), durable.Task{Key: "late", Handler: "h"}, durable.After(5*time.Second))
		require.ErrorIs(t, err, store.ErrUnfit)
		require.ErrorContains(t, err, "until 2199-12-30")
	}
	require.NoError(t, s.Close())
	_, err = diskstore.Open("store", diskstore.WithFS(fs), diskstore.WithClock(clk))
	require.ErrorIs(t, err, store.ErrUnfit)
	require.ErrorContains(t, err, "the clock shows 2277")
}

// A record is read as it was written, or not at all.
func FuzzRecords(f *testing.F) {
	for _, b := range diskstore.SampleRecords() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { diskstore.ReadRecords(t.Errorf, b) })
}
