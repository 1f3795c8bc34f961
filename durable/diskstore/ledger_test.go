package diskstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timertest"
)

// A choir is senders, and what each has sent last.
type choir struct {
	t    *testing.T
	clk  *timertest.Clock
	rng  *rand.Rand
	sent map[string]int64
}

func newChoir(t *testing.T) *choir {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &choir{t, clk, rand.New(rand.NewPCG(3, 4)), make(map[string]int64)}
}

func (x *choir) open(fs vfs.FS) *Store {
	s, err := Open("store", WithShards(1), WithClock(x.clk), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		option(func(c *config) { c.fs = fs }))
	require.NoError(x.t, err)
	return s
}

// command is the one of a sender with a number. Carried out a second time it has another
// outcome.
func (x *choir) command(s *Store, sender string, number int64) (store.Outcome, error) {
	id := fmt.Sprint(sender, "-", number)
	c := store.Command{Op: store.Schedule, Items: []store.Item{{ID: id, When: store.After(time.Hour), Task: store.Task{ID: id, Handler: "h"}}}}
	out, err := s.Change(context.Background(), 0, store.Stamp{Sender: sender, Number: number}, c)
	if err != nil {
		return 0, err
	}
	return out[0], nil
}

// sing has some senders send their next command, in batches of several as it happens.
func (x *choir) sing(s *Store, senders, commands int) {
	type sent struct {
		out store.Outcome
		err error
	}
	for range commands {
		some := make(map[string]chan sent)
		for range 1 + x.rng.IntN(8) {
			// Some send more often than others.
			name := fmt.Sprint("sender", int(float64(senders)*x.rng.Float64()*x.rng.Float64()))
			if some[name] == nil {
				c := make(chan sent, 1)
				some[name] = c
				x.sent[name]++
				number := x.sent[name]
				go func() {
					out, err := x.command(s, name, number)
					c <- sent{out, err}
				}()
			}
		}
		for _, c := range some {
			got := <-c
			require.NoError(x.t, got.err)
			require.Equal(x.t, store.Created, got.out)
		}
	}
}

// remembers has each sender send its latest command again, and the one before.
func (x *choir) remembers(s *Store) {
	for name, number := range x.sent {
		if number > 1 {
			_, err := x.command(s, name, number-1)
			require.ErrorIs(x.t, err, store.ErrStale, name)
		}
		out, err := x.command(s, name, number)
		require.NoError(x.t, err)
		require.Equal(x.t, store.Created, out, name)
	}
}

// written returns how many senders the ledgers on the disk have, those included that
// are in a later one too.
func written(t *testing.T, s *Store) (ledgers, senders int) {
	require.NoError(t, s.read(t.Context(), 0, func(v *view) error {
		prefix := appendSpace(nil, 0, spaceLedger)
		return v.each(prefix, prefix, func(key, value []byte) error {
			ledgers++
			return readLedger(key, value, func(sender) { senders++ })
		})
	}))
	return ledgers, senders
}

// The latest command of each sender is remembered, whenever the process ends, and the
// disk has not much more.
func TestLedger(t *testing.T) {
	x := newChoir(t)
	fs := vfs.NewCrashableMem()
	for _, senders := range []int{1, 5, 200, 40} {
		s := x.open(fs)
		x.sing(s, senders, 300)
		n, all := written(t, s)
		t.Logf("%d senders in %d ledgers, %d with those that are in a later one", len(x.sent), n, all)
		require.LessOrEqual(t, all, (mostGone+1)*len(x.sent)+8)
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, s.Close())
		s = x.open(fs)
		x.remembers(s)
		require.NoError(t, s.Close())
	}
	// Those that have been gone for long are forgotten, and their ledgers are free.
	s := x.open(fs)
	x.clk.Advance(2 * memory)
	x.sent = make(map[string]int64)
	for i := range 200 {
		_, err := x.command(s, fmt.Sprint("new", i), 1)
		require.NoError(t, err)
		x.sent[fmt.Sprint("new", i)] = 1
	}
	n, all := written(t, s)
	t.Logf("%d senders in %d ledgers, %d with those that are in a later one", len(x.sent), n, all)
	require.LessOrEqual(t, all, (mostGone+1)*len(x.sent)+8)
	require.NoError(t, s.Close())
}

// together has senders send their next command in one batch: the shard is kept from
// serving until all are there.
func (x *choir) together(s *Store, names []string) {
	sh := s.shards[0]
	held, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = sh.call(context.Background(), &call{look: func() { close(held); <-release }})
	})
	<-held
	errs := make([]error, len(names))
	for i, name := range names {
		x.sent[name]++
		number := x.sent[name]
		all.Go(func() { _, errs[i] = x.command(s, name, number) })
	}
	for there := 0; there < len(names); time.Sleep(time.Microsecond) {
		sh.line.mu.Lock()
		there = len(sh.line.calls)
		sh.line.mu.Unlock()
	}
	close(release)
	all.Wait()
	for _, err := range errs {
		require.NoError(x.t, err)
	}
}

// A sender that is left alone in a ledger moves on, so that the ledger can be written
// over.
func TestLedger_FewAreLeft(t *testing.T) {
	x := newChoir(t)
	fs := vfs.NewCrashableMem()
	s := x.open(fs)
	var busy []string
	for i := range 50 {
		busy = append(busy, fmt.Sprint("busy", i))
	}
	for i := range 20 {
		x.together(s, append(busy, fmt.Sprint("idle", i)))
	}
	n, all := written(t, s)
	t.Logf("%d senders in %d ledgers, %d with those that are in a later one", len(x.sent), n, all)
	require.LessOrEqual(t, n, 3)
	require.LessOrEqual(t, all, 3*len(x.sent))
	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	s = x.open(fs)
	x.remembers(s)
	require.NoError(t, s.Close())
}

// toVersion1 makes a store one of version 1, which has a key for each sender, and no
// heads. Its marker says so, or that it is of this version, as one that was upgraded in
// part.
func toVersion1(t *testing.T, fs vfs.FS, format int) {
	m, err := readMarker(fs, "store")
	require.NoError(t, err)
	db, err := pebble.Open("store", &pebble.Options{FS: fs, FormatMajorVersion: databaseFormat, Logger: &logger{log: slog.New(slog.NewTextHandler(io.Discard, nil))}})
	require.NoError(t, err)
	b := db.NewBatch()
	latest := make(map[string]int64)
	prefix := appendSpace(nil, 0, spaceLedger)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	require.NoError(t, err)
	for it.First(); it.Valid(); it.Next() {
		require.NoError(t, readLedger(it.Key(), it.Value(), func(x sender) {
			if x.number < latest[x.name] {
				return
			}
			latest[x.name] = x.number
			w := writer{[]byte{recordVersion}}
			w.int(x.number)
			w.time(x.seen)
			require.NoError(t, b.Set(append(appendSpace(nil, 0, spaceSender), x.name...), append(w.b, x.answer...), nil))
		}))
	}
	require.NoError(t, it.Close())
	for _, space := range []byte{spaceLedger, spaceHead} {
		prefix := appendSpace(nil, 0, space)
		require.NoError(t, b.DeleteRange(prefix, after(prefix), nil))
	}
	require.NoError(t, b.Commit(pebble.Sync))
	require.NoError(t, db.Close())
	m.Format = format
	require.NoError(t, m.write(fs, "store"))
}

// A store of version 1 is made one of this version, also if the process ended when the
// marker said so and nothing else was done.
func TestUpgrade(t *testing.T) {
	for _, format := range []int{1, formatVersion} {
		x := newChoir(t)
		fs := vfs.NewCrashableMem()
		s := x.open(fs)
		x.sing(s, 30, 50)
		require.NoError(t, s.Close())
		toVersion1(t, fs, format)

		s = x.open(fs)
		m, err := readMarker(fs, "store")
		require.NoError(t, err)
		require.Equal(t, formatVersion, m.Format)
		crashed := fs.CrashClone(vfs.CrashCloneCfg{})
		x.remembers(s)
		require.NoError(t, s.Close())

		s = x.open(crashed)
		_, err = s.Verify(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.read(t.Context(), 0, func(v *view) error {
			prefix := appendSpace(nil, 0, spaceSender)
			return v.each(prefix, prefix, func(key, _ []byte) error {
				t.Errorf("there is the key %q", key)
				return nil
			})
		}))
		x.remembers(s)
		require.NoError(t, s.Close())
	}
}
