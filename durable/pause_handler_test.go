package durable_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A paused handler waits in all shards, and its tasks, the store's check and the worker's log
// say so. The handler runs again after ResumeHandler.
func TestPauseHandler(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		var log bytes.Buffer
		c := durable.New(mem, durable.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		w := durable.NewWorker(c, durable.WithConcurrency(8))
		var ran [2]atomic.Int32
		for i, h := range []string{"bank", "mail"} {
			w.Handle(h, func(context.Context, durable.Delivery) error { ran[i].Add(1); return nil })
		}
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()

		since := time.Now()
		require.NoError(t, c.PauseHandler(ctx, "bank", "the bank is down"))
		scheduleMany(t, c, "bank", 20, durable.After(time.Second))
		scheduleMany(t, c, "mail", 20, durable.After(time.Second))
		time.Sleep(time.Minute)
		require.Zero(t, ran[0].Load())
		require.EqualValues(t, 20, ran[1].Load())
		paused, err := c.PausedHandlers(ctx)
		require.NoError(t, err)
		require.Len(t, paused, 1)
		require.Equal(t, "the bank is down", paused["bank"].Note)
		require.True(t, since.Equal(paused["bank"].Since), paused["bank"].Since)
		n := 0
		for info, err := range c.List(ctx, durable.Filter{}) {
			require.NoError(t, err)
			require.True(t, info.HandlerPaused && info.Attempts == 0, info)
			n++
		}
		require.Equal(t, 20, n)
		h, err := c.Check(ctx)
		require.NoError(t, err)
		require.Contains(t, strings.Join(h.Warnings, "\n"), `the handler "bank" is paused since `+since.UTC().Format(time.RFC3339)+": the bank is down")

		// A copy of the store is paused too.
		for name, move := range map[string]func(dst *memstore.Store) error{
			"Copy": func(dst *memstore.Store) error { _, err := durable.Copy(ctx, dst, mem); return err },
			"Import": func(dst *memstore.Store) error {
				var file bytes.Buffer
				if _, err := durable.Export(ctx, &file, mem); err != nil {
					return err
				}
				_, err := durable.Import(ctx, dst, &file)
				return err
			},
		} {
			dst := memstore.New()
			require.NoError(t, move(dst), name)
			copied, err := durable.New(dst, quiet).PausedHandlers(ctx)
			require.NoError(t, err)
			require.Equal(t, "the bank is down", copied["bank"].Note, name)
		}

		require.NoError(t, c.ResumeHandler(ctx, "bank"))
		require.NoError(t, c.ResumeHandler(ctx, "bank"))
		synctest.Wait()
		require.EqualValues(t, 20, ran[0].Load())
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
		require.Equal(t, 1, strings.Count(log.String(), "handlers are paused"), log.String())
		require.Equal(t, 1, strings.Count(log.String(), "no handler is paused any more"), log.String())
		paused, err = c.PausedHandlers(ctx)
		require.NoError(t, err)
		require.Nil(t, paused)
	})
}

// A million due tasks of a paused handler would cost as little as these: the worker claims only
// when it is woken.
func TestPauseHandler_CostsNoRounds(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error { t.Error("the handler ran"); return nil })
		require.NoError(t, c.PauseHandler(ctx, "h", ""))
		scheduleMany(t, c, "h", 1000, durable.After(0))
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		scheduleMany(t, c, "h", 2000, durable.After(time.Minute))
		claims := w.Stats().Claims
		time.Sleep(time.Hour)
		require.Equal(t, claims, w.Stats().Claims)
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
	})
}
