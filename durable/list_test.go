package durable_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestList_Forecast(t *testing.T) {
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
		n, err := c.Forecast(ctx, now, now.Add(61*time.Minute), now.Add(24*time.Hour))
		require.NoError(t, err)
		require.Equal(t, []int64{0, 60, 300}, n)
		_, err = c.Forecast(ctx, now.Add(1), now)
		require.ErrorIs(t, err, durable.ErrInvalid)
		r, err := c.Repair(ctx)
		require.NoError(t, err)
		require.Equal(t, durable.Repair{Looked: 300}, r)
	})
}
