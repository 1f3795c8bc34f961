package alarm

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ringLate rings as the goroutine of a bell's does.
func (h *hub) ringLate(now int64) {
	h.mu.Lock()
	h.running++
	h.ringLateLocked(now).call()
}

// A burst of rings is exact, and then one in a while. While there are more they are left
// to package time's timer, without being held back.
func TestAlarm_ExactWhileRingsAreRare(t *testing.T) {
	rings := 0
	h := newHub()
	a := h.add(func() { rings++ })
	defer gone(a)
	now := h.soon()
	for range burst + 1 {
		require.True(t, a.setAt(now))
		a.ring(now)
	}
	for range 1000 {
		require.False(t, a.setAt(now))
		a.ring(now)
	}
	require.Equal(t, burst+1+1000, rings)
	for range 100 {
		now += spacing / 2
		require.False(t, a.setAt(now), "they are still too many")
		a.ring(now)
	}
	now += recovery - 2
	require.False(t, a.setAt(now))
	now++
	require.True(t, a.setAt(now), "the many rings of before do not count for longer")
	a.ring(now)
	require.False(t, a.setAt(now))
	for range 100 {
		now += spacing
		require.True(t, a.setAt(now))
		a.ring(now)
	}
	now += int64(time.Hour)
	for range burst {
		require.True(t, a.setAt(now))
		a.ring(now)
	}
}

// Where the timer rings long before the waiter does, the procs are busy.
func TestAlarm_LeavesTheDescriptorWhileProcsAreBusy(t *testing.T) {
	rang := make(chan bool, 1)
	h := newHub()
	a := h.add(func() { rang <- true })
	defer gone(a)
	now := h.soon()
	require.True(t, a.setAt(now))
	h.ringLate(now + busyAfter)
	<-rang
	require.True(t, a.setAt(now), "as late as that it is on an idle one")
	now += 2 * busyAfter
	h.ringLate(now)
	<-rang
	require.False(t, a.setAt(now))
	require.True(t, h.backed, "and then the timer needs backups")
	now += busyFor - 2
	require.False(t, a.setAt(now))
	h.ringLate(now + lateAfter)
	<-rang
	now += busyFor
	require.True(t, a.setAt(now), "a timer alone may be so late")
	require.False(t, h.backed)
	a.setAt(now - 10)
	h.mu.Lock()
	h.exact = false
	h.mu.Unlock()
	now += lateAfter
	h.ringLate(now)
	<-rang
	require.False(t, a.setAt(now+busyFor-2), "but no later")
	require.True(t, a.setAt(now+busyFor))
}

// A goroutine that is held up in a function is no sign of that.
func TestAlarm_KeepsTheDescriptorWhileAFunctionRuns(t *testing.T) {
	rang, release := make(chan bool, 1), make(chan bool)
	h := newHub()
	held := h.add(func() { rang <- true; <-release })
	another := false
	a := h.add(func() {
		h.mu.Lock()
		another = h.fd.waiter != nil && !h.fd.waiter.inside
		h.mu.Unlock()
		rang <- true
	})
	held.Reset(time.Millisecond)
	for first := false; !first; { // until it is the descriptor that rings
		<-rang
		h.mu.Lock()
		first = h.fd.waiter != nil && h.fd.waiter.inside
		h.pace = pace{} // or it might never be, if it was not at once
		h.mu.Unlock()
		if !first {
			held.Reset(time.Millisecond)
			release <- true
		}
	}
	now := h.soon()
	require.True(t, a.setAt(now))
	h.ringLate(now + 2*busyAfter)
	<-rang
	require.True(t, another, "another waits")
	require.True(t, a.setAt(now))
	done := a.Close()
	<-done // it does not wait for the other
	done = held.Close()
	close(release)
	<-done
}

// While rings are many the descriptor is not kept: it would cost the runtime a system
// call whenever it looks for work.
func TestAlarm_GivesTheDescriptorBackWhileRingsAreMany(t *testing.T) {
	h := newHub()
	a, far := h.add(func() {}), h.add(func() {})
	defer gone(a)
	defer gone(far)
	now := h.soon()
	far.setAt(now + int64(time.Hour)) // so that nothing is done by the real time
	for range 2 * burst {
		a.setAt(now)
		a.ring(now)
	}
	require.False(t, a.setAt(now))
	a.ring(now + linger - 1)
	require.True(t, h.fd.isOpen())
	require.False(t, a.setAt(now+linger-1))
	a.ring(now + linger)
	require.False(t, h.fd.isOpen())
	require.True(t, a.setAt(now+int64(time.Second)))
	require.True(t, h.fd.isOpen())
}

// What the descriptor is set for may be gone when it expires, stopped in a bubble: then
// its goroutine sets it for the next, and does not go round for ever.
func TestAlarm_TheDescriptorExpiresForNothing(t *testing.T) {
	h := newHub()
	h.timer = newBell(h, func() { // it never gets to do anything
		h.mu.Lock()
		h.timer.beginLocked()
		h.endLocked()
		h.mu.Unlock()
	})
	first, other := h.add(func() {}), h.add(func() {})
	other.Reset(time.Hour)
	first.Reset(20 * time.Millisecond)
	synctest.Test(t, func(*testing.T) { first.Stop() })
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.armed == other.when && !h.exact
	}, 5*time.Second, time.Millisecond)
	<-first.Close()
	gone(other)
}
