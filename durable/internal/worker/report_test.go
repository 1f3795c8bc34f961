package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
)

// A loop that hands its attempts back queues their reports in each step. Only the first
// time may wake it: otherwise it never sleeps while its store does not answer.
func TestQueueReport_WakesTheLoopOnce(t *testing.T) {
	l := &Loop{wakeSignal: make(chan struct{}, 1)}
	a := &Attempt{loop: l, Cancel: func(error) {}}
	l.addLease(a, time.Time{})
	l.endAttempts(HandingBack)
	require.Len(t, l.wakeSignal, 1)
	<-l.wakeSignal
	l.endAttempts(HandingBack)
	require.Empty(t, l.wakeSignal)
	require.Len(t, l.reports, 1)
}

// A place is offered to a loop while the store delays its round. The round takes the
// reports that have come, but leaves the offer: nothing else gives the place back.
func TestTakeQueuedReports_LeavesAnOffer(t *testing.T) {
	l := &Loop{wakeSignal: make(chan struct{}, 1)}
	r := &round{grant: places.Grant{Claim: store.Claim{Max: 1}}}
	l.queueReport(&Report{Attempt: &Attempt{loop: l}, Report: store.Report{End: store.Done}})
	l.requestClaim()
	l.offerPlace()
	l.addQueuedReports(r)
	require.Len(t, r.reports, 1)
	require.False(t, l.claimNow, "the round claims")
	require.True(t, l.hasRequests(Working), "the offer makes the loop claim again")
}
