package diskstore

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

// A crowd is a worker and a client that put tasks through a shard.
type crowd struct {
	t      *testing.T
	s      *Store
	number int64
}

func (x *crowd) stamp() store.Stamp {
	x.number++
	return store.Stamp{Sender: "crowd", Number: x.number}
}

func (x *crowd) schedule(n int, kind string, when store.When) {
	for i := 0; i < n; i += store.MaxBatch {
		c := store.Command{Op: store.Schedule}
		for j := i; j < min(n, i+store.MaxBatch); j++ {
			id := fmt.Sprintf("%s-%d", kind, j)
			c.Items = append(c.Items, store.Item{ID: id, When: when, Task: store.Task{ID: id, Handler: "h", Record: make([]byte, 256)}})
		}
		_, err := x.s.Change(x.t.Context(), 0, x.stamp(), c)
		require.NoError(x.t, err)
	}
}

// finish has tasks run until none is due, and returns how many were.
func (x *crowd) finish() (n int) {
	r := store.Round{Lease: time.Minute, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: store.MaxClaim, Handlers: []string{"h"}}}
	for {
		a, err := x.s.Do(x.t.Context(), 0, x.stamp(), r)
		require.NoError(x.t, err)
		n += len(a.Tasks)
		r.Reports = r.Reports[:0]
		for _, c := range a.Tasks {
			r.Reports = append(r.Reports, store.Report{Hold: store.Hold{ID: c.ID, Token: c.Token}, End: store.Done})
		}
		if len(a.Tasks) == 0 {
			return n
		}
	}
}

// steps returns how many keys the iterators that fill the window have met, with those
// that were deleted.
func (x *crowd) steps() (n int64) {
	sh := x.s.shards[0]
	require.NoError(x.t, sh.call(x.t.Context(), &call{look: func() { n = sh.steps }}))
	return n
}

// Tasks that are finished are not met again by what looks for the next one, neither
// while the store is open nor after it was closed or killed.
func TestHead_FinishedTasksInFront(t *testing.T) {
	const finished, page = 40_000, 64
	for _, end := range []string{"closed", "killed"} {
		t.Run(end, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			var number int64
			reopen := func() *crowd {
				s, err := Open("store", WithShards(1), WithClock(clk), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
					option(func(c *config) { c.fs, c.batch, c.memTable, c.still = fs, page, 8<<20, true }))
				require.NoError(t, err)
				return &crowd{t: t, s: s, number: number}
			}
			x := reopen()
			for i := range 4 {
				x.schedule(finished/4, fmt.Sprint("first", i), store.After(0))
				clk.Advance(time.Second)
				require.Equal(t, finished/4, x.finish())
			}
			x.schedule(1, "next", store.After(time.Second))
			clk.Advance(time.Second)
			before := x.steps()
			require.Equal(t, 1, x.finish())
			require.LessOrEqual(t, x.steps()-before, int64(2*page), "in an open store")

			x.schedule(1, "last", store.After(0))
			if end == "killed" {
				fs = fs.CrashClone(vfs.CrashCloneCfg{})
			}
			require.NoError(t, x.s.Close())
			number = x.number
			x = reopen()
			require.Equal(t, 1, x.finish())
			t.Logf("%d steps", x.steps())
			most := int64(2 * page)
			if end == "killed" {
				most += 2 * (raiseEvery + store.MaxBatch)
			}
			require.LessOrEqual(t, x.steps(), most, "in a store that was opened again")
			require.NoError(t, x.s.Close())
		})
	}
}

// The head is raised as tasks are finished, and is lowered by one that is scheduled before
// it, in the batch of that. A head that is too high is found by Verify.
func TestHead_OnTheDisk(t *testing.T) {
	fs := vfs.NewCrashableMem()
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var number int64
	reopen := func(opts ...Option) *crowd {
		s, err := Open("store", append(opts, WithShards(1), WithClock(clk), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
			option(func(c *config) { c.fs, c.raise = fs, 10 }))...)
		require.NoError(t, err)
		return &crowd{t: t, s: s, number: number}
	}
	kill := func(x *crowd) {
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, x.s.Close())
		number = x.number
	}
	onDisk := func(x *crowd) (m mark) {
		require.NoError(t, x.s.read(t.Context(), 0, func(v *view) error {
			all, err := v.heads()
			for _, m = range all {
			}
			return err
		}))
		return m
	}
	x := reopen()
	began := x.s.now()
	x.schedule(100, "first", store.After(0))
	require.Zero(t, onDisk(x))
	clk.Advance(time.Second)
	require.Equal(t, 100, x.finish())
	clk.Advance(time.Second)
	x.schedule(20, "second", store.After(0)) // its batches raise the head
	require.Equal(t, 20, x.finish())
	raised := onDisk(x)
	require.Greater(t, raised.at, began)
	kill(x)

	x = reopen()
	require.Equal(t, raised, onDisk(x))
	x.schedule(1, "early", store.At(began-5))
	require.Equal(t, mark{began - 5, "early-0"}, onDisk(x))
	kill(x)

	x = reopen()
	require.Equal(t, 1, x.finish(), "it was before the head")
	require.NoError(t, x.s.Close())
	number = x.number

	x = reopen()
	require.Equal(t, x.s.now(), onDisk(x).at, "Close has raised it")
	x.schedule(1, "last", store.After(time.Hour))
	_, err := x.s.Verify(t.Context())
	require.NoError(t, err)
	w := writer{[]byte{recordVersion}}
	w.time(x.s.now().Add(2 * time.Hour))
	w.string("")
	require.NoError(t, x.s.db.Set(appendKind(nil, 0, spaceHead, 1), w.b, nil))
	_, err = x.s.Verify(t.Context())
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "before the head")
	require.NoError(t, x.s.Close())
}
