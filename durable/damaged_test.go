package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// damaging is a store that returns tasks with damaged records and damaged handler
// names.
type damaging struct{ store.Store }

func (d damaging) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	a, err := d.Store.Do(ctx, shard, s, r)
	for i := range a.Tasks {
		a.Tasks[i].Handler, a.Tasks[i].Record = "", nil
	}
	return a, err
}

// A task with an unreadable record becomes a dead letter. Otherwise workers would hand
// it back for ever.
func TestWorker_BuriesWhatIsDamaged(t *testing.T) {
	bubble(t, func(t *testing.T, st *memstore.Store) {
		c := durable.New(damaging{st}, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error {
			t.Error("the damaged task has run")
			return nil
		})
		start(t, w)
		_, err := c.Schedule(ctx, durable.Task{Key: "a", Handler: "h"}, durable.After(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		s, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Dead)
		require.Zero(t, s.Pending)
		require.Zero(t, s.Running)
	})
}
