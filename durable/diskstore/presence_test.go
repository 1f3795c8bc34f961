package diskstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
)

// A filter has what was added, and little else.
func TestPresence(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(kind string, i int) uint64 { return maphash.String(seed, fmt.Sprint(kind, i)) }
	for _, x := range []struct{ keys, bytes, adds int }{
		{0, presenceBytes, leastKeys},                // as full as the smallest is made for
		{100_000, presenceBytes, 200_000},            // twice as many as it was made with
		{150_000, 150_000 * bitsPerKey / 8, 150_000}, // there is memory for no more
	} {
		p := newPresence(x.keys, x.bytes)
		require.NotNil(t, p)
		require.LessOrEqual(t, int(p.Cap())/8, x.bytes)
		for i := range x.adds {
			p.add(hash("there", i))
		}
		wrong := 0
		for i := range x.adds {
			require.True(t, p.has(hash("there", i)))
			if p.has(hash("not there", i)) {
				wrong++
			}
		}
		require.Less(t, wrong, x.adds*3/100)
	}
	require.Nil(t, newPresence(3_000_000, 2<<20), "too many keys for the memory")
}

// lookups returns how many of the shard's lookups of the database were in vain since
// the latest filter was made, and whether there is one.
func lookups(t *testing.T, s *Store) (vain int, filtered bool) {
	f := &s.shards[0].filter
	require.NoError(t, s.shards[0].call(t.Context(), &call{look: func() { vain, filtered = f.vain, f.presence != nil && !f.making }}))
	return vain, filtered
}

// New keys are not looked for in the database: not in a new store, and not in one that
// was opened with tasks, once many were. Tasks that are there are found.
func TestPresence_ReopenedStore(t *testing.T) {
	fs := vfs.NewMem()
	reopen := func() *Store {
		s, err := Open("store", option(func(c *config) { c.fs = fs }), WithShards(1), WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		require.NoError(t, err)
		return s
	}
	var number int64
	command := func(s *Store, op store.Op, kind string, n int) (out []store.Outcome) {
		for i := 0; i < n; i += store.MaxBatch {
			c := store.Command{Op: op}
			for j := i; j < min(n, i+store.MaxBatch); j++ {
				id := fmt.Sprint(kind, j)
				x := store.Item{ID: id}
				if op == store.Schedule {
					x.When, x.Task = store.After(time.Hour), store.Task{ID: id, Handler: "h"}
				}
				c.Items = append(c.Items, x)
			}
			number++
			some, err := s.Change(context.Background(), 0, store.Stamp{Sender: "s", Number: number}, c)
			require.NoError(t, err)
			out = append(out, some...)
		}
		return out
	}
	s := reopen()
	command(s, store.Schedule, "first", 5000)
	vain, filtered := lookups(t, s)
	require.True(t, filtered)
	require.Less(t, vain, 50)
	require.NoError(t, s.Close())

	s = reopen()
	_, filtered = lookups(t, s)
	require.False(t, filtered, "it was made although nothing was looked for")
	command(s, store.Schedule, "second", 5000)
	for !filtered { // another goroutine makes it
		_, filtered = lookups(t, s)
	}
	before, _ := lookups(t, s)
	for i, out := range command(s, store.Schedule, "third", 5000) {
		require.Equal(t, store.Created, out, i)
	}
	after, _ := lookups(t, s)
	require.Less(t, after-before, 50)
	for _, kind := range []string{"first", "second", "third"} {
		for i, out := range command(s, store.Cancel, kind, 5000) {
			require.Equal(t, store.Removed, out, "%s%d", kind, i)
		}
	}
	require.NoError(t, s.Close())
}
