package executor_test

import (
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
