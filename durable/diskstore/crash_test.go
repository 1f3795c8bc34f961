package diskstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

var silent = diskstore.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// long reports whether the cases that take minutes are to be run.
func long() bool { return os.Getenv("TICKLESS_CHAOS") == "long" }

// A script is commands that one caller sends to a shard, one after the other, under a
// clock that only it moves: what the store has after each of them is a state, and what a
// crash leaves must be the latest that was acknowledged, or the one after it.
type script struct {
	t     *testing.T
	dir   string
	clk   *timertest.Clock
	opts  []diskstore.Option
	rng   *rand.Rand
	n     int64
	holds []store.Claimed

	mu     sync.Mutex
	acked  int // commands that were acknowledged
	states []state
}

type state struct {
	entries []store.Entry
	stats   store.Stats
}

func newScript(t *testing.T, opts ...diskstore.Option) *script {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &script{
		t:   t,
		dir: "store",
		clk: clk,
		// Small tables, so that there are flushes and compactions, and heads that are
		// raised often.
		opts:   append(opts, diskstore.WithClock(clk), diskstore.WithShards(1), diskstore.WithMemTable(64<<10), diskstore.WithWindow(5, 3), diskstore.WithRaise(2), silent),
		rng:    rand.New(rand.NewPCG(7, 7)),
		states: []state{{}},
	}
}

// open opens the script's directory on a file system, or on that of the machine.
func (x *script) open(fs vfs.FS) (*diskstore.Store, error) {
	opts := x.opts[:len(x.opts):len(x.opts)]
	if fs != nil {
		opts = append(opts, diskstore.WithFS(fs))
	}
	return diskstore.Open(x.dir, opts...)
}

// step sends the next command, and notes the state that follows.
func (x *script) step(s *diskstore.Store) error {
	x.clk.Advance(time.Duration(x.rng.IntN(300)) * time.Microsecond)
	x.n++
	st := store.Stamp{Sender: fmt.Sprint("sender", x.n%3), Number: x.n}
	var err error
	switch kind := x.rng.IntN(10); {
	case kind < 5:
		c := store.Command{Op: store.Schedule}
		for range 1 + x.rng.IntN(4) {
			id := fmt.Sprint("k", x.rng.IntN(60))
			record := make([]byte, 200+x.rng.IntN(2000))
			for i := range record {
				record[i] = byte(x.rng.Int())
			}
			when := store.After(time.Duration(x.rng.IntN(3000)) * time.Microsecond)
			if x.rng.IntN(8) == 0 { // before what is finished, and so before the head
				when = store.At(store.Time(x.clk.Now().Add(-time.Duration(x.rng.IntN(50)) * time.Millisecond).UnixMicro()))
			}
			c.Items = append(c.Items, store.Item{ID: id, When: when,
				Task: store.Task{ID: id, Handler: fmt.Sprint("h", x.rng.IntN(2)), Record: record}})
		}
		_, err = s.Change(context.Background(), 0, st, c)
	case kind < 6:
		c := store.Command{Op: store.Cancel, Items: []store.Item{{ID: fmt.Sprint("k", x.rng.IntN(60))}}}
		_, err = s.Change(context.Background(), 0, st, c)
	default:
		r := store.Round{Lease: 5 * time.Millisecond, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 3, Handlers: []string{"h0", "h1"}}}
		for _, t := range x.holds {
			end := store.Report{Hold: store.Hold{ID: t.ID, Token: t.Token}, Due: t.Due, End: store.Done, Text: "text"}
			if n := x.rng.IntN(4); n == 0 {
				end.End, end.Next = store.Retry, store.After(time.Millisecond)
			} else if n == 1 {
				end.End = store.Failed
			}
			r.Reports = append(r.Reports, end)
		}
		x.holds = nil
		var a store.Answer
		if a, err = s.Do(context.Background(), 0, st, r); err == nil {
			x.holds = a.Tasks
		}
	}
	if err != nil {
		return err
	}
	now, err := x.look(s)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.states = append(x.states, now)
	x.acked++
	return nil
}

func (x *script) look(s *diskstore.Store) (now state, err error) {
	var c store.Cursor
	for {
		p, err := s.List(context.Background(), 0, store.Filter{}, c, 100)
		if err != nil {
			return now, err
		}
		now.entries = append(now.entries, p.Entries...)
		if c = p.Next; c == "" {
			break
		}
	}
	now.stats, err = s.Stats(context.Background(), 0)
	now.stats.Unknown, now.stats.Late, now.stats.Overdue = 0, 0, 0 // these change with the time
	return now, err
}

// recovers opens what a crash has left after some commands were acknowledged, and sees
// that it is one of the states that it may be.
func (x *script) recovers(fs vfs.FS, acked int, what string) {
	x.t.Helper()
	s, err := x.open(fs)
	require.NoError(x.t, err, what)
	_, err = s.Verify(context.Background())
	require.NoError(x.t, err, what)
	got, err := x.look(s)
	require.NoError(x.t, err, what)
	require.NoError(x.t, s.Close(), what)
	if acked+1 < len(x.states) && equalStates(got, x.states[acked+1]) {
		return
	}
	if !equalStates(got, x.states[acked]) {
		x.t.Fatalf("%s: after %d commands were acknowledged there is:\n%s\nand should be:\n%s", what, acked, got, x.states[acked])
	}
}

// String leaves the records out.
func (s state) String() string {
	text := ""
	for _, e := range s.entries {
		text += fmt.Sprintf("%v %s at %d, %d attempts, a record of %d bytes\n", e.State, e.ID, e.At, e.Attempts, len(e.Record))
	}
	return text + fmt.Sprintf("%+v", s.stats)
}

func equalStates(a, b state) bool {
	return reflect.DeepEqual(a, b)
}

func mutates(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

// TestCrash crashes the disk at each operation of a run, and keeps none, half and all of
// what was not synced.
func TestCrash(t *testing.T) {
	begins(t)
	commands, every := 150, 9
	switch {
	case testing.Short():
		every = 211
	case long():
		commands, every = 600, 1
	}
	x := newScript(t)
	disk := vfs.NewCrashableMem()
	type crash struct {
		fs    vfs.FS
		acked int
		what  string
	}
	var crashes []crash
	rng := rand.New(rand.NewPCG(1, 2))
	ops, done := 0, 0
	hook := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !mutates(op) {
			return nil
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if ops++; ops%every != 0 {
			return nil
		}
		for _, kept := range []int{0, 50, 100} {
			cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(rng.Uint64(), 0))}
			crashes = append(crashes, crash{disk.CrashClone(cfg), x.acked,
				fmt.Sprintf("crash before operation %d (%v %s), %d%% kept", ops, op.Kind, op.Path, kept)})
		}
		return nil
	})
	s, err := x.open(errorfs.Wrap(disk, hook))
	require.NoError(t, err)
	check := func() {
		x.mu.Lock()
		some := crashes
		crashes = nil
		x.mu.Unlock()
		for _, c := range some {
			x.recovers(c.fs, c.acked, c.what)
			done++
		}
	}
	for range commands {
		require.NoError(t, x.step(s))
		check()
	}
	require.NoError(t, s.Close())
	check()
	note(t, "the disk crashed before each of %d operations (every %d.), with none, half and all kept of what was not synced: %d stores opened, each in the latest acknowledged state or the next", ops, every, done)
	require.NotZero(t, done)
}

// Commands of many callers in several shards, whose syncs are shared, are on the disk
// when they are acknowledged.
func TestCrash_ManyCallers(t *testing.T) {
	const callers, each = 16, 60
	disk := vfs.NewCrashableMem()
	var mu sync.Mutex
	var acked []string
	type crash struct {
		fs    vfs.FS
		acked []string
	}
	var crashes []crash
	ops := 0
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if mutates(op) {
			if ops++; ops%5 == 0 {
				crashes = append(crashes, crash{disk.CrashClone(vfs.CrashCloneCfg{}), acked[:len(acked):len(acked)]})
			}
		}
		return nil
	}))
	s := open(t, "store", diskstore.WithFS(fs), diskstore.WithShards(4))
	var all sync.WaitGroup
	for g := range callers {
		all.Go(func() {
			for i := range each {
				id := fmt.Sprintf("k-%d-%d", g, i)
				stamp := store.Stamp{Sender: fmt.Sprint(g), Number: int64(i + 1)}
				if _, err := s.Change(context.Background(), store.ShardOf(id, 4), stamp, scheduling(store.After(time.Hour), id)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	mu.Lock()
	some := append(crashes, crash{disk.CrashClone(vfs.CrashCloneCfg{}), acked})
	mu.Unlock()
	require.NoError(t, s.Close())
	t.Logf("%d crashes", len(some))
	for _, c := range some {
		s, err := diskstore.Open("store", diskstore.WithFS(c.fs), silent)
		require.NoError(t, err)
		for _, id := range c.acked {
			_, err := s.Get(t.Context(), store.ShardOf(id, 4), id)
			require.NoError(t, err, id)
		}
		require.NoError(t, s.Close())
	}
}

// TestFailure has each operation of a run that writes fail, once or from then on, with
// an error or for want of room. Whatever is returned, what was acknowledged is there
// when the store is opened again.
func TestFailure(t *testing.T) {
	begins(t)
	every := 7
	switch {
	case testing.Short():
		every = 163
	case long():
		every = 1
	}
	// A first run counts the operations.
	total, states := failAt(t, 0, false, nil, nil)
	failed := 0
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, forEver := range []bool{false, true} {
			for n := 1 + failed%every; n <= total; n += every {
				failed++
				failAt(t, n, forEver, cause, states)
			}
		}
	}
	note(t, "each of %d operations that write (every %d.) failed, once or for ever, with EIO or ENOSPC: %d runs, each ended with an error and nothing acknowledged lost", total, every, failed)
}

func failAt(t *testing.T, n int, forEver bool, cause error, states []state) (ops int, _ []state) {
	x := newScript(t)
	disk := vfs.NewCrashableMem()
	var mu sync.Mutex
	what := ""
	over := false
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if !mutates(op) || over {
			return nil
		}
		if ops++; n == 0 || ops < n || ops > n && !forEver {
			return nil
		}
		if ops == n {
			what = fmt.Sprintf("%v at operation %d, %v %s, for ever %v", cause, n, op.Kind, op.Path, forEver)
		}
		return cause
	}))
	s, err := x.open(fs)
	if err == nil {
		for range 60 {
			if err = x.step(s); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, store.ErrFull) {
			require.ErrorIs(t, err, diskstore.ErrFailed, what)
			require.ErrorIs(t, err, cause, what)
			require.ErrorIs(t, err, store.ErrUnfit, what)
			// Nothing is accepted any more.
			for range 2 {
				err := x.step(s)
				require.ErrorIs(t, err, diskstore.ErrFailed, what)
				require.ErrorIs(t, err, store.ErrNotDone, what)
			}
			_, err = s.Check(context.Background())
			require.ErrorIs(t, err, diskstore.ErrFailed, what)
			require.ErrorIs(t, s.Wait(context.Background(), []int{0}, func(int) {}), diskstore.ErrFailed, what)
		}
		_ = s.Close() // it may fail too
	} else {
		require.ErrorIs(t, err, cause, what)
	}
	mu.Lock()
	over = true
	mu.Unlock()
	if states != nil {
		x.states = states // those of a run in which nothing failed, which are more
	}
	for _, kept := range []int{0, 100} {
		x.recovers(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: x.rng}), x.acked, what)
	}
	x.recovers(fs, x.acked, what)
	return ops, x.states
}
