package timer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Whoever is refused is told to the handler, with the callback, however it was
// submitted.
func TestWithDropHandler_GetsWhatIsRefused(t *testing.T) {
	errFull := errors.New("full")
	for name, e := range map[string]executor.Executor{
		"submit": executor.Func(func(func()) error { return errFull }),
		"pool":   executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1), executor.WithOverload(executor.Reject)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "pool" { // one of this bubble
					e = executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1), executor.WithOverload(executor.Reject))
				}
				dropped, ran := 0, 0
				s := timer.New(timer.WithExecutor(e), timer.WithDropHandler(func(f func(), err error) {
					if name == "pool" {
						require.ErrorIs(t, err, executor.ErrOverloaded)
					} else {
						require.Same(t, errFull, err)
					}
					dropped++
					f() // one after the other: no lock
				}))
				release := make(chan struct{})
				if name == "pool" {
					for range 2 { // one runs and one waits
						must(s.Start(0, func() { <-release }))
						synctest.Wait()
					}
				}
				for i := range 100 {
					must(s.Start(time.Duration(i%2)*time.Second, func() { ran++ }))
				}
				k := timer.NewKeyed(s, func(k, v int) { ran += v })
				require.NoError(t, k.Set(1, 100, time.Second))
				must(s.Every(time.Second, func() { ran += 1000 }))
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				require.Equal(t, 102, dropped)
				require.Equal(t, 1200, ran)
				require.EqualValues(t, dropped, s.Stats().Dropped)
				close(release)
				require.NoError(t, s.Shutdown(t.Context()))
			})
		})
	}
}

// The handler may use the Scheduler, and Shutdown waits for it.
func TestWithDropHandler_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		var s *timer.Scheduler
		s = timer.New(timer.WithExecutor(executor.Func(func(func()) error { return executor.ErrOverloaded })),
			timer.WithDropHandler(func(func(), error) {
				s.Len()
				time.Sleep(time.Minute)
				ended = true
			}))
		must(s.Start(time.Second, func() {}))
		time.Sleep(2 * time.Second)
		require.NoError(t, s.Shutdown(t.Context()))
		require.True(t, ended)
	})
}

func TestWithDropHandler_Nil(t *testing.T) {
	require.PanicsWithValue(t, "timer: WithDropHandler: the func must not be nil", func() { timer.WithDropHandler(nil) })
}
