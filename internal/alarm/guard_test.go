package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newGuardedLate returns a hub whose guards are set, and ring long after the test.
func newGuardedLate() *hub {
	h := newHub()
	h.guardAfter = time.Hour
	return h
}

// guarded returns the guard that is set.
func (h *hub) guarded() *bell {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.guards[h.guard]; g.set {
		return g
	}
	return nil
}

// A ring that never comes, as its goroutine waits in a long queue, comes from the guard,
// before anything has shown that procs are busy; from then on there are backups.
func TestGuard_RingsInPlaceOfTheTimer(t *testing.T) {
	rang := make(chan bool, 1)
	h := newHub()
	a := h.add(func() { rang <- true })
	defer gone(a)
	h.mu.Lock()
	now := h.now()
	h.pace.tat = now + int64(time.Hour) // it is not exact
	h.moveLocked(a, now)
	h.armLocked(now)
	set := h.guards[h.guard].set
	h.timer.stop()
	h.timerAt = never // should it have begun before
	h.mu.Unlock()
	require.True(t, set)
	<-rang
	require.Nil(t, h.guarded())
	require.EqualValues(t, 1, h.rings.ByBackup)
	require.NotZero(t, h.pace.busyUntil)
}

// newRepeating returns an alarm that sets itself again for now, an hour from now, when it
// rings.
func newRepeating() (h *hub, a *member, now int64) {
	h = newGuardedLate()
	now = h.soon()
	a = h.add(func() { a.setAt(now) })
	return h, a, now
}

// With exact rings each has a guard of its own, and leaves none behind.
func TestGuard_ExactRings(t *testing.T) {
	h, a, now := newRepeating()
	defer gone(a)
	exact := a.setAt(now)
	for range burst / 2 {
		guard := h.guarded()
		require.NotNil(t, guard)
		a.setAt(now - 1)
		require.Same(t, guard, h.guarded(), "it stays where it is when the moment changes")
		a.ring(now)
		require.NotNil(t, h.guarded())
		require.Equal(t, exact, guard != h.guarded())
	}
}

// Frequent rings have one guard for as long as it is set.
func TestGuard_FrequentRings(t *testing.T) {
	h, a, now := newRepeating()
	defer gone(a)
	for range burst + 1 {
		a.ring(now)
	}
	require.False(t, h.exact)
	guard := h.guarded()
	require.NotNil(t, guard)
	for range 1000 {
		a.ring(now)
		require.False(t, h.exact)
		require.Same(t, guard, h.guarded())
	}
}

// A guard that rings in vain is set again if there is a moment to come soon.
func TestGuard_InVain(t *testing.T) {
	h := newGuardedLate()
	a := h.add(func() {})
	defer gone(a)
	vain := func() {
		h.mu.Lock()
		guard := h.guards[h.guard]
		guard.stop()
		h.mu.Unlock()
		h.backup(guard)
	}
	a.Reset(time.Second / 2)
	require.NotNil(t, h.guarded())
	vain()
	require.NotNil(t, h.guarded())
	a.Reset(time.Hour)
	require.Nil(t, h.guarded(), "not for a moment that is far")
	vain()
	require.Nil(t, h.guarded())
	a.Reset(time.Second / 2)
	require.NotNil(t, h.guarded())
	a.Stop()
	require.Nil(t, h.guarded(), "nor for none")
}
