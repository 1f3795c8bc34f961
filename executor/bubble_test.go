package executor_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
)

// The watchdog of such a pool cannot be set inside: it would be by the bubble's time, for
// decades from now, and callbacks behind one that blocks would never run.
func TestPool_MadeOutsideABubbleAndUsedInside(t *testing.T) {
	const elsewhere = "executor: a Pool that was made outside a testing/synctest bubble is used inside one:" +
		" call NewPool inside the bubble"
	p := executor.NewPool(executor.WithWorkers(1))
	unblock := make(chan struct{})
	nop := func() {}
	require.NoError(t, p.Submit(func() { <-unblock }))
	synctest.Test(t, func(t *testing.T) {
		for name, use := range map[string]func(){
			"Submit":      func() { p.Submit(nop) },
			"SubmitBatch": func() { p.SubmitBatch([]func(){nop, nop, nop}) },
			"Share":       func() { p.Share([]func(){nop, nop}) },
		} {
			require.PanicsWithValue(t, elsewhere, use, name)
		}
	})
	require.Equal(t, uint64(1), p.Stats().Submitted, "nothing was accepted, and no lock is held")
	ran := make(chan struct{})
	require.NoError(t, p.Submit(func() { close(ran) }))
	select {
	case <-ran:
	case <-time.After(10 * time.Second):
		t.Fatal("a callback waits behind one that blocks")
	}
	close(unblock)
	require.NoError(t, p.Shutdown(t.Context()))
}

// What is submitted elsewhere would run on a worker of either side, by its time, and nobody
// in a bubble would wait for what runs in the other.
func TestPool_OfAnotherBubble(t *testing.T) {
	const env = "TICKLESS_EXECUTOR_BUBBLE"
	nop := func() {}
	uses := map[string]func(*executor.Pool){
		"Submit":      func(p *executor.Pool) { p.Submit(nop) },
		"SubmitBatch": func(p *executor.Pool) { p.SubmitBatch([]func(){nop}) },
		"Share":       func(p *executor.Pool) { p.Share([]func(){nop}) },
	}
	options := map[string][]executor.PoolOption{
		"any": nil,
		"one": {executor.WithMaxWorkers(1), executor.WithQueue(1), executor.WithOverload(executor.Block)},
	}
	if name := os.Getenv(env); name != "" {
		parts := strings.Split(name, " ")
		var p *executor.Pool
		synctest.Test(t, func(t *testing.T) {
			p = executor.NewPool(options[parts[0]]...)
			require.NoError(t, p.Submit(nop))
		})
		use := func() { uses[parts[1]](p) }
		if parts[2] == "inside" {
			synctest.Test(t, func(*testing.T) { use() })
		} else {
			use()
		}
		return
	}
	for opts := range options {
		for use := range uses {
			for _, where := range []string{"outside", "inside"} {
				name := opts + " " + use + " " + where
				cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
				cmd.Env = append(os.Environ(), env+"="+name)
				out, err := cmd.CombinedOutput()
				require.Error(t, err, name)
				require.Contains(t, string(out), "fatal error: receive on synctest channel from outside bubble", name)
			}
		}
	}
}

// Close has to wake what waits in the bubble, which nobody elsewhere may.
func TestPool_OfAnotherBubbleWhereASubmitterWaits(t *testing.T) {
	const env = "TICKLESS_EXECUTOR_BUBBLE"
	if os.Getenv(env) != "" {
		waits, closed := make(chan *executor.Pool), make(chan struct{})
		go func() {
			(<-waits).Close()
			close(closed)
		}()
		synctest.Test(t, func(t *testing.T) {
			unblock := make(chan struct{})
			p := executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1))
			for range 3 {
				go p.Submit(func() { <-unblock })
			}
			synctest.Wait()
			waits <- p
			<-closed
			close(unblock)
		})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "fatal error: semaphore wake of synctest goroutine from outside bubble")
}

// What was shut down in a bubble may be shut down again when that is over.
func TestShutdown_InABubbleAndAgainOutside(t *testing.T) {
	for name, newExecutor := range map[string]func() ownExecutor{
		"pool":       func() ownExecutor { return executor.NewPool() },
		"inline":     func() ownExecutor { return executor.NewInline() },
		"goroutines": func() ownExecutor { return executor.NewGoroutines() },
	} {
		t.Run(name, func(t *testing.T) {
			var e ownExecutor
			synctest.Test(t, func(t *testing.T) {
				e = newExecutor()
				require.NoError(t, e.Submit(func() {}))
				require.NoError(t, e.Shutdown(t.Context()))
			})
			require.NoError(t, e.Close())
			require.NoError(t, e.Shutdown(t.Context()))
			require.ErrorIs(t, e.Submit(func() {}), executor.ErrClosed)
			synctest.Test(t, func(t *testing.T) { require.NoError(t, e.Shutdown(t.Context())) })
		})
	}
}

type ownExecutor interface {
	executor.Executor
	Close() error
	Shutdown(context.Context) error
}

// The watchdog of a pool that is idle does not keep it from being closed elsewhere.
func TestPool_OfABubbleThatIsOver(t *testing.T) {
	var p *executor.Pool
	synctest.Test(t, func(t *testing.T) {
		p = executor.NewPool(executor.WithWorkers(1))
		for range 3 {
			require.NoError(t, p.Submit(func() { time.Sleep(100 * time.Microsecond) }))
		}
		time.Sleep(350 * time.Microsecond) // before the watchdog comes
	})
	require.NoError(t, p.Close())
	require.NoError(t, p.Shutdown(t.Context()))
	require.EqualValues(t, 3, p.Stats().Run)
	_, _, err := p.Share([]func(){func() {}})
	require.ErrorIs(t, err, executor.ErrClosed)
}
