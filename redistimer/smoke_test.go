package redistimer

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

func TestSmoke(t *testing.T) {
	s := redistest.Start(t)
	r := s.Client()
	defer r.Close()
	c := New(r)
	w := NewWorker(c)
	var n atomic.Int64
	var all sync.WaitGroup
	all.Add(1000)
	w.Handle("a", func(ctx context.Context, d Delivery) error {
		n.Add(1)
		all.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	var items []Item
	for i := range 1000 {
		items = append(items, Item{Task{Key: strconv.Itoa(i), Handler: "a"}, After(time.Duration(i) * time.Millisecond)})
	}
	out, err := c.ScheduleBatch(ctx, items)
	require.NoError(t, err)
	require.Equal(t, Created, out[999])
	all.Wait()
	t.Log(w.Stats())
	cancel()
	require.NoError(t, <-done)
	st, err := c.Stats(context.Background())
	require.NoError(t, err)
	t.Logf("%+v %+v", st, w.Stats())
}
