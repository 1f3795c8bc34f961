package durable_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// unreadable creates three dead letters. The second has a damaged record, the third a
// record of a future version.
func unreadable(t *testing.T) *durable.Client {
	t.Helper()
	mem := memstore.New(memstore.WithShards(1))
	c := durable.New(mem, quiet)
	item := func(id string, record []byte) store.Item {
		now := store.TimeOf(time.Now())
		return store.Item{ID: id, Entry: &store.Entry{Task: store.Task{ID: id, Handler: "h", Record: record}, State: store.Dead, At: now, Due: now}}
	}
	_, err := mem.Change(ctx, 0, store.Stamp{Sender: "s", Number: 1}, store.Command{Op: store.Import, Items: []store.Item{
		item("b damaged", []byte{1, 2, 3}), item("c newer", bytes.Repeat([]byte{255}, 20))}})
	require.NoError(t, err)
	w := durable.NewWorker(c)
	w.Handle("h", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) })
	start(t, w)
	for _, key := range []string{"a", "d"} {
		schedule(t, c, durable.Task{Key: key}, durable.After(0))
		synctest.Wait()
	}
	time.Sleep(time.Second)
	require.NoError(t, w.Shutdown(ctx))
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 4, st.Dead)
	return c
}

// Dead letters that cannot be decoded are purged and requeued like others, because the
// commands only need their IDs.
func TestDead_AllWithWhatCannotBeDecoded(t *testing.T) {
	for name, call := range map[string]func(*durable.Client) (int, error){
		"PurgeAll": func(c *durable.Client) (int, error) { return c.PurgeAll(ctx, durable.Filter{State: durable.Dead}) },
		"RequeueAll": func(c *durable.Client) (int, error) {
			return c.RequeueAll(ctx, durable.Filter{State: durable.Dead}, durable.After(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := unreadable(t)
				n, err := call(c)
				require.NoError(t, err)
				require.Equal(t, 4, n)
				st, err := c.Stats(ctx)
				require.NoError(t, err)
				require.Zero(t, st.Dead)
			})
		})
	}
}

// A task that cannot be decoded is listed with an error and the fields that are known.
// The list continues after it.
func TestList_GoesOnBehindWhatCannotBeDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := unreadable(t)
		var listed, bad []string
		for info, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			listed = append(listed, info.Task.Key)
			if err != nil {
				bad = append(bad, info.ID)
			}
		}
		require.ElementsMatch(t, []string{"a", "b damaged", "c newer", "d"}, listed)
		require.Equal(t, []string{"b damaged", "c newer"}, bad)
		p, err := c.Page(ctx, durable.Filter{State: durable.Dead}, "", 10)
		require.NoError(t, err)
		require.Len(t, p.Tasks, 4)
	})
}
