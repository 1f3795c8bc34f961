package places

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

func newTwoClaimers(t *testing.T) (p *Pool, a, b *Claimer) {
	timers := timer.New()
	t.Cleanup(func() { timers.Close() })
	p = New(8, make([]Limit, 1), time.Now, timers)
	nothing := func() {}
	return p, p.NewClaimer(nothing, nothing), p.NewClaimer(nothing, nothing)
}

// A claimer waits for a last suspect, which another Worker gets then: others may claim suspects
// again.
func TestSuspects_LastIsGone(t *testing.T) {
	p, a, b := newTwoClaimers(t)
	claim := func(c *Claimer, started int, waiting store.WaitingSuspects) store.Claim {
		g := p.Reserve(c, 2, false)
		for range started {
			g.Count(0, true, true)
		}
		g.Waiting = waiting
		p.Settle(c, &g)
		return g.Claim
	}
	require.Equal(t, 1, claim(a, 1, store.NoneWaits).Suspects)
	running := p.NewPlace(0)
	running.Admit(false)
	require.Zero(t, claim(a, 0, store.LastWaits).Suspects)
	require.Zero(t, claim(a, 0, store.NoneWaits).Suspects)
	running.Release(true)
	require.Equal(t, 2, claim(b, 0, store.NoneWaits).Suspects)
}

// A suspect that ends without its handler, for example because it was missed, does not allow
// another one.
func TestSuspects_EndsWithoutItsHandler(t *testing.T) {
	p, a, _ := newTwoClaimers(t)
	run := func(hasRun bool) {
		g := p.Reserve(a, 2, false)
		x := p.NewPlace(0)
		g.Count(0, true, true)
		p.Settle(a, &g)
		x.Admit(false)
		x.Release(hasRun)
	}
	run(false)
	require.Equal(t, 1, p.suspects.allowed)
	run(true)
	require.Equal(t, 2, p.suspects.allowed)
}

// While a claim may get a last suspect, no other claim gets suspects: the last one runs alone.
func TestSuspects_LastBesideAnotherClaim(t *testing.T) {
	p, a, b := newTwoClaimers(t)
	p.suspects.allowed = 4
	first := p.Reserve(a, 1, false)
	require.True(t, first.Claim.OnlySuspect)
	require.Equal(t, 1, first.Claim.Suspects)
	second := p.Reserve(b, 2, false)
	require.Zero(t, second.Claim.Suspects)
	p.Settle(b, &second)
	p.Settle(a, &first)
	third := p.Reserve(b, 2, false)
	require.Equal(t, 2, third.Claim.Suspects)
}
