package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A wrapped clock shows the system's time, but is not clock.System() itself. So the
// worker treats it as a virtual clock.
type wrapped struct {
	clock.Clock
	looks atomic.Int64
}

func (c *wrapped) Now() time.Time {
	c.looks.Add(1)
	return c.Clock.Now()
}

func TestWorker_WithAClockAroundTheSystems(t *testing.T) {
	clk := &wrapped{Clock: clock.System()}
	c := durable.New(memstore.New(memstore.WithClock(clk)), quiet)
	w := durable.NewWorker(c)
	ran := make(chan time.Time, 10)
	w.Handle("h", func(context.Context, durable.Delivery) error {
		ran <- time.Now()
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	due := time.Now().Add(100 * time.Millisecond)
	schedule(t, c, durable.Task{Key: "k"}, durable.At(due))
	schedule(t, c, durable.Task{Key: "late"}, durable.After(time.Hour))
	got := <-ran
	require.False(t, got.Before(due))
	require.Less(t, got.Sub(due), 100*time.Millisecond)

	before := clk.looks.Load()
	time.Sleep(300 * time.Millisecond)
	require.Less(t, clk.looks.Load()-before, int64(100), "the worker reads the clock again and again")

	began := time.Now()
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-ended)
	require.Less(t, time.Since(began), time.Second)
}
