package durable_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestList_Filters(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		now := time.Now()
		for i := range 300 {
			schedule(t, c, durable.Task{Key: fmt.Sprintf("%c%d", 'a'+i%2, i), Handler: fmt.Sprint("h", i%3)},
				durable.At(now.Add(time.Duration(i+1)*time.Minute)))
		}
		count := func(f durable.Filter) (n int) {
			for info, err := range c.List(ctx, f) {
				require.NoError(t, err)
				require.Equal(t, durable.Pending, info.State)
				n++
			}
			return n
		}
		require.Equal(t, 300, count(durable.Filter{}))
		require.Equal(t, 150, count(durable.Filter{Prefix: "a"}))
		require.Equal(t, 100, count(durable.Filter{Handler: "h1", State: durable.Pending}))
		require.Equal(t, 0, count(durable.Filter{State: durable.Dead}))
		require.Equal(t, 60, count(durable.Filter{To: now.Add(61 * time.Minute)}))
		require.Equal(t, 240, count(durable.Filter{From: now.Add(61 * time.Minute)}))
		for range c.List(ctx, durable.Filter{}) {
			break
		}
		r, err := c.Repair(ctx)
		require.NoError(t, err)
		require.Equal(t, durable.Repair{Looked: 300}, r)
	})
}

// Pages cover all shards in the order of the list. A Cursor stays valid while tasks are
// added and removed.
func TestPage(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		for _, shards := range []int{1, 4, 64} {
			c := durable.New(memstore.New(memstore.WithShards(shards)), quiet)
			now := time.Now()
			for i := range 200 {
				schedule(t, c, durable.Task{Key: fmt.Sprint("k", i), Handler: fmt.Sprint("h", i%7)}, durable.At(now.Add(time.Duration(i+1)*time.Minute)))
			}
			var seen []string
			var cursor durable.Cursor
			for pages := 0; ; pages++ {
				p, err := c.Page(ctx, durable.Filter{State: durable.Pending}, cursor, 30)
				require.NoError(t, err)
				for _, info := range p.Tasks {
					seen = append(seen, info.ID)
				}
				if cursor = p.Next; cursor == "" {
					require.Equal(t, 6, pages)
					break
				}
				require.Len(t, p.Tasks, 30)
				_, err = c.Cancel(ctx, p.Tasks[29].ID) // the task of the cursor
				require.NoError(t, err)
				schedule(t, c, durable.Task{Key: fmt.Sprint("new", pages)}, durable.After(0)) // before it
			}
			require.Len(t, seen, 200)
			for i, id := range seen {
				require.Equal(t, fmt.Sprint("k", i), id)
			}
			byID, err := c.Page(ctx, durable.Filter{Prefix: "k1", State: durable.Pending}, "", 5)
			require.NoError(t, err)
			seen = nil
			for _, info := range byID.Tasks {
				seen = append(seen, info.ID)
			}
			require.Equal(t, []string{"k1", "k10", "k100", "k101", "k102"}, seen)
			p, err := c.Page(ctx, durable.Filter{Error: "no"}, "", 5)
			require.NoError(t, err)
			require.Empty(t, p.Tasks, "nothing has failed")
			for cursor, limit := range map[durable.Cursor]int{"": 0, "!": 1, "aGVsbG8": 1} {
				_, err := c.Page(ctx, durable.Filter{}, cursor, limit)
				require.ErrorIs(t, err, durable.ErrInvalid)
			}
			p, err = c.Page(ctx, durable.Filter{Handler: "none"}, "", 1000)
			require.NoError(t, err)
			require.Equal(t, durable.Page{}, p)
		}
	})
}

// In JSON, a State is a word, not a number.
func TestInfo_JSON(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k"}, durable.After(time.Hour))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		b, err := json.Marshal(info)
		require.NoError(t, err)
		require.Contains(t, string(b), `"state":"pending"`)
		var back durable.Info
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, durable.Pending, back.State)
		require.True(t, info.At.Equal(back.At))
		require.Error(t, json.Unmarshal([]byte(`{"state":"ill"}`), &back))
	})
}
