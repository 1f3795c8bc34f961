package durable_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// Each repetition is in the list, merged with the tasks that run once.
func TestUpcoming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New())
		start := time.Now()
		for _, x := range []struct {
			t durable.Task
			w durable.When
		}{
			{durable.Task{Key: "once", Handler: "h"}, durable.After(25 * time.Minute)},
			{durable.Task{Key: "often", Handler: "h", Every: 20 * time.Minute}, durable.Next()},
			{durable.Task{Key: "ends", Handler: "h", Every: 20 * time.Minute, End: start.Add(30 * time.Minute)}, durable.After(time.Minute)},
			{durable.Task{Key: "later", Handler: "h"}, durable.After(2 * time.Hour)},
		} {
			_, err := c.Schedule(t.Context(), x.t, x.w)
			require.NoError(t, err)
		}
		list := func(limit int) (got []string) {
			runs, err := c.Upcoming(t.Context(), start.Add(time.Hour+time.Minute), limit)
			require.NoError(t, err)
			for _, r := range runs {
				got = append(got, r.Key+" "+r.Due.Sub(start).String())
			}
			return got
		}
		all := []string{"ends 1m0s", "often 20m0s", "ends 21m0s", "once 25m0s", "often 40m0s", "often 1h0m0s"}
		require.Equal(t, all, list(100))
		require.Equal(t, all[:2], list(2))
		_, err := c.Upcoming(t.Context(), start, 0)
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}
