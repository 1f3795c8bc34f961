package alarm

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// Functions that never return delay neither others that are due with them nor the
// rings that follow.
func TestHub_FunctionsThatHang(t *testing.T) {
	h := newHub()
	release := make(chan bool)
	hung := make(chan bool)
	rang := make(chan int)
	var hanging, others []*member
	for i := range 10 {
		hanging = append(hanging, h.add(func() { hung <- true; <-release }))
		others = append(others, h.add(func() { rang <- i }))
	}
	for _, d := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond} {
		h.mu.Lock()
		at := after(h.now(), d)
		for i := range hanging {
			hanging[i].when, others[i].when = at, at+1 // those that hang come first
			h.set.add(hanging[i])
			h.set.add(others[i])
		}
		h.armLocked(h.now())
		h.mu.Unlock()
		seen := map[int]bool{}
		for range hanging {
			<-hung
			seen[<-rang] = true
		}
		require.Len(t, seen, len(others))
	}
	for i := range hanging {
		others[i].Close()
		hanging[i].Close()
	}
	close(release)
}

// Alarms that are made, set, moved, stopped and closed by many goroutines: each rings
// for its last setting, and nothing is left of them.
func TestHub_ManyComeAndGo(t *testing.T) {
	h := newHub()
	goroutines := runtime.NumGoroutine()
	keeps := h.add(func() {}) // its moment is never lost
	var rings atomic.Int64
	stays := h.add(func() { rings.Inc() })
	stays.Reset(50 * time.Millisecond)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				rang := make(chan bool, 10)
				a := h.add(func() { rang <- true })
				a.Reset(time.Duration(i%3) * time.Hour)
				a.Reset(time.Duration((i+g)%5) * 100 * time.Microsecond)
				switch i % 4 {
				case 0:
					a.Stop()
					a.Reset(time.Microsecond)
					<-rang
				case 1:
					keeps.Reset(time.Second)
				default:
					<-rang
				}
				a.Close()
				a.Reset(0)
			}
		})
	}
	wg.Wait()
	for rings.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	require.EqualValues(t, 1, rings.Load())
	h.mu.Lock()
	if h.now() < keeps.when { // else it may have rung
		require.Len(t, h.set, 1)
	}
	h.mu.Unlock()
	keeps.Close()
	stays.Close()
	require.Empty(t, h.set)
	require.False(t, h.fd.isOpen())
	for runtime.NumGoroutine() > goroutines {
		runtime.Gosched()
	}
}

// Alarms of bubbles have their bubble's time, and others the system's meanwhile.
func TestAlarm_BubblesBesideOthers(t *testing.T) {
	rang := make(chan bool)
	outside := New(func() { rang <- true })
	defer gone(outside)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					var at time.Duration
					a := New(func() { at = time.Since(start) })
					a.Reset(time.Hour)
					time.Sleep(time.Hour)
					synctest.Wait()
					require.Equal(t, time.Hour, at)
					a.Close()
				})
			}
		})
	}
	for range 50 {
		start := time.Now()
		outside.Reset(time.Millisecond)
		<-rang
		require.GreaterOrEqual(t, time.Since(start), time.Millisecond)
	}
	wg.Wait()
}

// An alarm of the system's that is set from inside a bubble, where there is no telling
// the time, stays as it is. Others are late for nothing, and none of its goroutines is
// the bubble's, which would have to end with it.
func TestAlarm_SetFromInsideABubble(t *testing.T) {
	h := newHub()
	rang, late := make(chan bool, 1), make(chan bool, 1)
	a, b := h.add(func() { rang <- true }), h.add(func() { late <- true })
	a.Reset(20 * time.Millisecond)
	b.Reset(30 * time.Millisecond)
	synctest.Test(t, func(*testing.T) { a.Reset(time.Hour) })
	<-rang
	<-late
	a.Reset(time.Hour)
	at := a.when
	synctest.Test(t, func(*testing.T) { a.Reset(0) })
	require.Equal(t, at, a.when)
	synctest.Test(t, func(*testing.T) { a.Stop() })
	synctest.Test(t, func(*testing.T) { a.Reset(0) })
	require.NotContains(t, h.set, a)
	b.Reset(time.Millisecond)
	<-late
	b.Reset(time.Hour)
	synctest.Test(t, func(*testing.T) { a.Close() })
	b.Reset(time.Millisecond)
	<-late
	b.Close()
	require.Empty(t, h.set)
}

// The hub's timer cannot be set from inside a bubble: it would be by the bubble's time,
// for decades from now. So it stays, rings for nothing, and is set again then.
func TestHub_TheFirstIsStoppedInsideABubble(t *testing.T) {
	for what, end := range map[string]func(*member){
		"Stop":  func(m *member) { m.Stop() },
		"Close": func(m *member) { m.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHub()
			first, other := h.add(func() {}), h.add(func() {})
			first.Reset(time.Hour)
			other.Reset(2 * time.Hour)
			at := h.timerAt
			synctest.Test(t, func(*testing.T) { end(first) })
			require.Equal(t, []*member{other}, []*member(h.set))
			require.Equal(t, at, h.timerAt)
			h.armed, h.timerAt = h.now(), h.now() // that moment has come
			h.tick()
			require.Equal(t, other.when, h.armed)
			require.Equal(t, other.when-soonEnough, h.timerAt)
			other.Close()
		})
	}
}

// A function that takes long keeps the goroutine that waits for the descriptor. The timer
// rings in its place, and leads when that has happened twice.
func TestHub_FunctionsThatTakeLong(t *testing.T) {
	h := newHub()
	rang, release := make(chan time.Duration), make(chan bool)
	var a *member
	var set time.Time
	a = h.add(func() {
		late := time.Since(set)
		set = time.Now()
		a.Reset(time.Millisecond)
		rang <- late
		<-release
	})
	set = time.Now()
	a.Reset(time.Millisecond)
	for range 5 {
		require.Less(t, <-rang, time.Second)
	}
	h.mu.Lock()
	if h.fd.isOpen() {
		require.Greater(t, h.busyUntil, int64(0))
	}
	h.mu.Unlock()
	a.Close()
	for len(rang) > 0 {
		<-rang
	}
	close(release)
}

// Twice late, the descriptor is left alone for a while, which grows with each trial that
// fails, and falls with rings that are punctual.
func TestHub_LateDescriptor(t *testing.T) {
	h := newHub()
	ring := func(at, late int64) {
		h.fdAt = at
		h.rangLocked(at+late, false)
	}
	const late = lateAfter + 1
	ring(0, late)
	require.Zero(t, h.busyUntil, "once may be the machine's fault")
	ring(10, 0)
	ring(20, late)
	require.Zero(t, h.busyUntil)
	ring(30, late)
	require.Equal(t, 30+late+minHold, h.busyUntil)
	at := h.busyUntil
	ring(at, late)
	require.Equal(t, at+late+4*minHold, h.busyUntil, "the first trial")
	for range 10 {
		at = h.busyUntil
		ring(at, late)
	}
	require.Equal(t, at+late+maxHold, h.busyUntil)
	for range 10 {
		ring(at, 0)
	}
	require.Equal(t, minHold, h.hold)
}
