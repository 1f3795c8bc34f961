package diskstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/diskstore"
	"github.com/tickless/tickless/durable/store"
)

// recordOf is a record that tells whose it is.
func recordOf(id string) []byte { return []byte(strings.Repeat(id+" ", 20)) }

func scheduling(when store.When, ids ...string) store.Command {
	c := store.Command{Op: store.Schedule}
	for _, id := range ids {
		c.Items = append(c.Items, store.Item{ID: id, When: when, Task: store.Task{ID: id, Handler: "h", Record: recordOf(id)}})
	}
	return c
}

// The memory of calls is used again, but not that of callers who have given up, whom a
// shard may be about to serve.
func TestChange_CallersThatGiveUp(t *testing.T) {
	s := open(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithShards(1))
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 300 {
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(100*time.Microsecond))
				var ids []string
				for j := range 1 + rand.IntN(3) {
					ids = append(ids, fmt.Sprintf("k-%d-%d-%d", g, i, j))
				}
				// Whether it is carried out does not matter.
				_, _ = s.Change(ctx, 0, store.Stamp{Sender: fmt.Sprint(g), Number: int64(i + 1)}, scheduling(store.After(time.Hour), ids...))
				cancel()
			}
		})
	}
	all.Wait()
	n := 0
	var c store.Cursor
	for {
		p, err := s.List(t.Context(), 0, store.Filter{}, c, 100)
		require.NoError(t, err)
		for _, e := range p.Entries {
			require.Equal(t, string(recordOf(e.ID)), string(e.Record))
			n++
		}
		if c = p.Next; c == "" {
			break
		}
	}
	t.Logf("%d tasks", n)
	require.NotZero(t, n)
}

// What a task is scheduled as while it runs stays what it is when later commands use the
// memory of that one.
func TestChange_FollowingKeepsItsRecord(t *testing.T) {
	s := open(t, "store", diskstore.WithFS(vfs.NewMem()), diskstore.WithShards(1))
	number := int64(0)
	change := func(id string) {
		number++
		_, err := s.Change(t.Context(), 0, store.Stamp{Sender: "s", Number: number}, scheduling(store.After(0), id))
		require.NoError(t, err)
	}
	do := func(r store.Round) store.Answer {
		number++
		r.Lease, r.MaxCrashes = time.Hour, 3
		a, err := s.Do(t.Context(), 0, store.Stamp{Sender: "s", Number: number}, r)
		require.NoError(t, err)
		return a
	}
	change("k")
	got := do(store.Round{Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{"h"}}})
	require.Len(t, got.Tasks, 1)
	change("k")
	for i := range 26 {
		change(string(rune('A' + i))) // as long, so that it has room there
	}
	end := store.Report{Hold: store.Hold{ID: "k", Token: got.Tasks[0].Token}, End: store.Done}
	require.Equal(t, []store.Receipt{store.Overtaken}, do(store.Round{Reports: []store.Report{end}}).Receipts)
	e, err := s.Get(t.Context(), 0, "k")
	require.NoError(t, err)
	require.Equal(t, string(recordOf("k")), string(e.Record))
}
