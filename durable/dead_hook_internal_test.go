package durable

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/memstore"
)

// A dead hook that begins late still gets the context of its own Run.
func TestCallDeadHook_DuringTheNextRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the hook's goroutine runs when this one waits
	type runKey struct{}
	got := make(chan any, 1)
	w := NewWorker(New(memstore.New()))
	w.Handle("h", func(context.Context, Delivery) error { return nil },
		WithDeadHook(func(ctx context.Context, _ Delivery, _ error) { got <- ctx.Value(runKey{}) }))
	w.deadHooks, w.commandCtx = new(sync.WaitGroup), context.WithValue(t.Context(), runKey{}, "first")
	(&attempt{w: w, handler: w.handlers["h"]}).callDeadHook(nil)
	w.commandCtx = context.WithValue(t.Context(), runKey{}, "second")
	require.Equal(t, "first", <-got)
}
