package places

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A fixture is a Pool on a virtual clock, with claimers that count their offers.
type fixture struct {
	*Pool
	clock  *timertest.Clock
	offers map[*Claimer]int
}

func newFixture(t *testing.T, n int, limits ...Limit) *fixture {
	c := timertest.NewClock(time.Unix(1e9, 0))
	timers := timer.New(timer.WithClock(c), timer.WithExecutor(executor.NewInline()))
	t.Cleanup(func() { timers.Close() })
	return &fixture{New(n, limits, c.Now, timers), c, make(map[*Claimer]int)}
}

func (f *fixture) newClaimer() *Claimer {
	var c *Claimer
	c = f.NewClaimer(func() { f.offers[c]++ }, func() {})
	return c
}

// claim claims up to most places and starts tasks of the handlers.
func (f *fixture) claim(t *testing.T, c *Claimer, most int, handlers ...int) (store.Claim, []*Place) {
	t.Helper()
	g := f.Reserve(c, most, false)
	require.LessOrEqual(t, len(handlers), g.Claim.Max)
	var places []*Place
	for _, h := range handlers {
		x := f.NewPlace(h)
		g.Count(h, true, false)
		places = append(places, &x)
	}
	f.Settle(c, &g)
	return g.Claim, places
}

// A claim may free nothing when all its tasks have ended already, after the Run: the pool is
// idle only once.
func TestPool_IdleOnce(t *testing.T) {
	f := newFixture(t, 1, Limit{})
	c := f.newClaimer()
	g := f.Reserve(c, 1, false)
	idle := f.End()
	x := f.NewPlace(0)
	x.Release(true) // the task of the claim ends before the claim is settled
	g.Count(0, true, false)
	f.Settle(c, &g)
	<-idle
	n, _ := f.InUse()
	require.Zero(t, n)
}

// Of eight places, two are only for handlers that run nothing.
func TestPool_SparePlaces(t *testing.T) {
	f := newFixture(t, 8, Limit{}, Limit{}, Limit{})
	slow, other := f.newClaimer(), f.newClaimer()
	f.claim(t, slow, 6, 0, 0, 0, 0, 0, 0)
	claim, quick := f.claim(t, other, 8, 1)
	require.Equal(t, 2, claim.Max)
	require.Equal(t, 2, claim.Spare)
	require.Equal(t, []store.Room{{Handler: 0, Most: 2, Busy: true}}, claim.Rooms)
	claim, _ = f.claim(t, other, 8, 2)
	require.Equal(t, 1, claim.Spare)
	claim, _ = f.claim(t, slow, 8)
	require.Zero(t, claim.Max)
	require.True(t, claim.Full)
	quick[0].Release(true).Offer()
	require.Equal(t, map[*Claimer]int{other: 1}, f.offers, "a spare place, for a handler that runs nothing")
}

// A claimer that waits for a handler's limit gets an offer when a task of the handler ends, or
// when its rate allows another.
func TestPool_OffersWhatALimitFrees(t *testing.T) {
	for name, c := range map[string]struct {
		limit Limit
		free  func(f *fixture, running []*Place)
	}{
		"places": {Limit{Places: 2}, func(_ *fixture, running []*Place) { running[0].Release(true).Offer() }},
		"rate":   {Limit{Rate: 20}, func(f *fixture, _ []*Place) { f.clock.Advance(60 * time.Millisecond) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 8, c.limit)
			l := f.newClaimer()
			claim, running := f.claim(t, l, 4, 0, 0)
			require.Equal(t, 2, claim.Max)
			claim, _ = f.claim(t, l, 4)
			require.Zero(t, claim.Max)
			require.Empty(t, f.offers)
			c.free(f, running)
			require.Equal(t, map[*Claimer]int{l: 1}, f.offers)
			claim, _ = f.claim(t, l, 4)
			require.Equal(t, 1, claim.Max)
		})
	}
}

// A place whose handler hangs is given again, and is not free twice when the handler returns.
func TestPlace_Hangs(t *testing.T) {
	f := newFixture(t, 1, Limit{})
	c := f.newClaimer()
	_, running := f.claim(t, c, 1, 0)
	reports := 0
	running[0].Watch(0, time.Minute, func() { reports++ })
	f.clock.Advance(2 * time.Second)
	n, hanging := f.InUse()
	require.Equal(t, []int{1, 1, 1}, []int{n, hanging, reports})
	f.clock.Advance(time.Minute)
	claim, again := f.claim(t, c, 1, 0)
	require.Equal(t, 1, claim.Max)
	running[0].Release(true)
	claim, _ = f.claim(t, c, 1)
	require.Zero(t, claim.Max)
	again[0].Release(true)
	claim, _ = f.claim(t, c, 1)
	require.Equal(t, 1, claim.Max)
	n, hanging = f.InUse()
	require.Equal(t, []int{0, 0}, []int{n, hanging})
}

// One suspect runs at first. Each that returns allows one more, until one crashes. A last
// suspect runs alone.
func TestPool_Suspects(t *testing.T) {
	f := newFixture(t, 8, Limit{})
	c, other := f.newClaimer(), f.newClaimer()
	start := func(isLast bool) *Place {
		g := f.Reserve(c, 1, false)
		x := f.NewPlace(0)
		x.Admit(isLast)
		g.Count(0, true, true)
		f.Settle(c, &g)
		return &x
	}
	allowed := func(c *Claimer) (n int, only bool) {
		claim, _ := f.claim(t, c, 8)
		return claim.Suspects, claim.OnlySuspect
	}
	n, only := allowed(c)
	require.Equal(t, 1, n)
	require.True(t, only)
	x := start(false)
	n, _ = allowed(c)
	require.Zero(t, n)
	x.Release(true)
	n, _ = allowed(c)
	require.Equal(t, 2, n)
	x = start(false)
	n, only = allowed(c)
	require.Equal(t, 1, n)
	require.False(t, only)
	x.Crash()
	n, _ = allowed(c)
	require.Equal(t, 1, n)
	x.Release(true) // of a lost lease
	x = start(true)
	x.Release(true)
	x = start(true)
	n, _ = allowed(c)
	require.Zero(t, n, "two are allowed, but a last one runs")

	g := f.Reserve(c, 1, false)
	g.Waiting = store.LastWaits
	f.Settle(c, &g)
	x.Release(true)
	n, _ = allowed(other)
	require.Zero(t, n, "another claimer waits for a last suspect")
	n, only = allowed(c)
	require.Equal(t, 3, n)
	require.True(t, only)
}
