package durable

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// A loop that hands its attempts back queues their reports in each step. Only the first
// time may wake it: otherwise it never sleeps while its store does not answer.
func TestQueueReport_WakesTheLoopOnce(t *testing.T) {
	l := &shardLoop{wakeSignal: make(chan struct{}, 1)}
	a := &attempt{loop: l, cancel: func(error) {}}
	l.leases.addLast(a, time.Time{})
	l.endAttempts(phaseHandingBack)
	require.Len(t, l.wakeSignal, 1)
	<-l.wakeSignal
	l.endAttempts(phaseHandingBack)
	require.Empty(t, l.wakeSignal)
	require.Len(t, l.reports, 1)
}

// A place is offered to a loop while the store delays its round. The round takes the
// reports that have come, but leaves the offer: nothing else gives the place back.
func TestTakeQueuedReports_LeavesAnOffer(t *testing.T) {
	l := &shardLoop{wakeSignal: make(chan struct{}, 1)}
	r := &round{grant: places.Grant{Claim: store.Claim{Max: 1}}}
	l.queueReport(&report{attempt: &attempt{loop: l}, end: store.Done})
	l.requestClaim()
	l.offerPlace()
	l.addQueuedReports(r)
	require.Len(t, r.reports, 1)
	require.False(t, l.claimNow, "the round claims")
	require.True(t, l.hasNewWork(phaseWorking), "the offer makes the loop claim again")
}

// A dead hook that begins late still gets the context of its own Run.
func TestCallDeadHook_DuringTheNextRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the hook's goroutine runs when this one waits
	type runKey struct{}
	got := make(chan any, 1)
	w := NewWorker(New(memstore.New()))
	w.Handle("h", func(context.Context, Delivery) error { return nil },
		WithDeadHook(func(ctx context.Context, _ Delivery, _ error) { got <- ctx.Value(runKey{}) }))
	w.deadHooks, w.commandCtx = new(sync.WaitGroup), context.WithValue(t.Context(), runKey{}, "first")
	w.callDeadHook(&report{attempt: &attempt{loop: &shardLoop{w: w}, handler: w.handlers["h"]}})
	w.commandCtx = context.WithValue(t.Context(), runKey{}, "second")
	require.Equal(t, "first", <-got)
}
