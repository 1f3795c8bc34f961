package alarm

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newGuardedLate returns a hub whose guards are set, and ring long after the test.
func newGuardedLate() *hub {
	h := newHub()
	h.guardAfter, h.few = time.Hour, 0
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
	h.few = 0
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

// The guard is behind the moment that comes next, and no more than guardAfter. It is not
// moved away from a moment for which it is set; another is set then.
func TestGuard_FollowsTheMoment(t *testing.T) {
	h := newGuardedLate()
	a := h.add(func() {})
	defer gone(a)
	now, hour := h.soon(), int64(time.Hour)
	var guard *bell
	set := func(moment int64) (same bool) {
		t.Helper()
		h.mu.Lock()
		h.moveLocked(a, moment)
		h.armLocked(now)
		h.mu.Unlock()
		before := guard
		guard = h.guarded()
		require.NotNil(t, guard)
		require.True(t, before == guard || before == nil || !before.set, "one at a time")
		require.Greater(t, h.guardAt, moment)
		require.LessOrEqual(t, h.guardAt, moment+hour)
		return before == guard
	}
	set(now + 3*hour)
	require.Equal(t, now+4*hour, h.guardAt, "also if it is far away")
	require.True(t, set(now+1))
	require.Equal(t, now+1+hour, h.guardAt, "an earlier moment has an earlier guard")
	require.True(t, set(now+hour/2))
	require.Equal(t, now+1+hour, h.guardAt, "which is left while it is behind the moment")
	require.False(t, set(now+1+hour))
	require.False(t, set(now+3*hour))
	now += 5 * hour
	require.False(t, set(now), "its goroutine waits: the next has one of its own")
	a.Stop()
	require.Nil(t, h.guarded())
}

// Frequent rings have one guard for as long as it is behind them.
func TestGuard_FrequentRings(t *testing.T) {
	h := newGuardedLate()
	now := h.soon()
	var a *member
	a = h.add(func() { a.setAt(now) })
	defer gone(a)
	for range burst + 1 {
		a.ring(now)
	}
	require.False(t, h.exact)
	guard := h.guarded()
	require.NotNil(t, guard)
	for range 1000 {
		a.ring(now)
		now++
		require.Same(t, guard, h.guarded())
	}
}

// A guard that rings in vain is set again if there is a moment to come, and there are no
// backups.
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
	a.Reset(time.Minute)
	require.NotNil(t, h.guarded())
	vain()
	require.NotNil(t, h.guarded())
	h.backed = true
	vain()
	require.Nil(t, h.guarded())
	h.backed = false
	a.Stop()
	vain()
	require.Nil(t, h.guarded())
}

// Where there are few goroutines, no queue is long.
func TestGuard_FewGoroutines(t *testing.T) {
	h := newGuardedLate()
	a := h.add(func() {})
	defer gone(a)
	h.few = math.MaxInt
	a.Reset(time.Minute)
	require.Nil(t, h.guarded())
	h.few = 0
	a.Reset(2 * time.Minute)
	require.NotNil(t, h.guarded())
	h.few = math.MaxInt
	a.Reset(3 * time.Minute)
	require.Nil(t, h.guarded())
	require.Equal(t, few, newHub().few)
}
