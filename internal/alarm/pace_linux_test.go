package alarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// arm sets the alarm by a clock of the test's, and reports whether exactly.
func (a *system) arm(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set, a.when = true, now.Add(time.Second)
	a.armLocked(now)
	return a.exact
}

func (a *system) ring(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ringLocked(now)
}

// A burst of rings is exact, and then one in a while; the rest are left to package
// time's timer, without being held back.
func TestAlarm_ExactWhileRingsAreRare(t *testing.T) {
	rings := 0
	a := newSystem(func() { rings++ })
	defer a.Close()
	now := time.Now()
	for range burst + 1 {
		require.True(t, a.arm(now))
		a.ring(now)
	}
	for range 1000 {
		require.False(t, a.arm(now))
		a.ring(now)
	}
	require.Equal(t, burst+1+1000, rings)
	now = now.Add(spacing)
	require.True(t, a.arm(now), "the many rings of before do not count for longer")
	a.ring(now)
	require.False(t, a.arm(now))
	for range 100 {
		now = now.Add(spacing)
		require.True(t, a.arm(now))
		a.ring(now)
	}
	now = now.Add(time.Hour)
	for range burst {
		require.True(t, a.arm(now))
		a.ring(now)
	}
}

// Where the timer rings long before the waiter does, the procs are busy.
func TestAlarm_LeavesTheDescriptorWhileProcsAreBusy(t *testing.T) {
	rang := make(chan bool, 1)
	a := newSystem(func() { rang <- true })
	defer a.Close()
	now := time.Now()
	require.True(t, a.arm(now))
	a.mu.Lock()
	a.when = now.Add(-2 * busyAfter)
	a.fd.waiter++ // the one that there is does not come
	a.mu.Unlock()
	a.tick()
	<-rang
	require.False(t, a.arm(time.Now()))
	require.True(t, a.arm(time.Now().Add(2*busyFor)))
}
