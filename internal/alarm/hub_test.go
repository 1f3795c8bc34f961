package alarm

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// Functions that never return delay no other function, due now or later.
func TestHub_FunctionsThatHang(t *testing.T) {
	h := newHub()
	release := make(chan bool)
	hung := make(chan bool)
	rang := make(chan int)
	var hanging, others []*hubAlarm
	for i := range 10 {
		hanging = append(hanging, h.add(func() { hung <- true; <-release }))
		others = append(others, h.add(func() { rang <- i }))
	}
	for _, d := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond} {
		h.mu.Lock()
		at := h.now() + int64(d)
		for i := range hanging {
			hanging[i].when, others[i].when = at, at+1 // the hanging functions come first
		}
		h.alarms = append(append(h.alarms, hanging...), others...)
		h.armForFirstAlarmLocked(h.now())
		h.mu.Unlock()
		seen := map[int]bool{}
		for range hanging {
			<-hung
			seen[<-rang] = true
		}
		require.Len(t, seen, len(others))
	}
	for i := range hanging {
		others[i].Stop()
		hanging[i].Stop()
	}
	h.release()
	close(release)
}

// Many goroutines make, set, move, stop and close alarms. Each alarm rings for its last
// setting, and no resources remain.
func TestHub_ManyComeAndGo(t *testing.T) {
	h := newHub()
	goroutines := runtime.NumGoroutine()
	keeps := h.add(func() {}) // its setting must never be lost
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
				a.Stop()
			}
		})
	}
	wg.Wait()
	for rings.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	require.EqualValues(t, 1, rings.Load())
	h.mu.Lock()
	if h.now() < keeps.when { // otherwise it may have rung
		require.Len(t, h.alarms, 1)
	}
	h.mu.Unlock()
	keeps.Stop()
	stays.Stop()
	require.Empty(t, h.alarms)
	h.release()
	require.Nil(t, h.descriptors[0])
	for runtime.NumGoroutine() > goroutines {
		runtime.Gosched()
	}
}

// Functions that block delay no ring of another alarm: a descriptor whose goroutine waits
// is always set. The descriptors stay in use, and there are never more than two.
func TestHub_FunctionsThatBlock(t *testing.T) {
	h := newHub()
	const n = 10
	inFunction, release := make(chan bool), make(chan bool)
	next := h.add(func() {})
	for range n {
		a := h.add(func() { inFunction <- true; <-release })
		a.Reset(time.Duration(nearLimit / 2))
		h.mu.Lock()
		d := h.armedDescriptor
		if d == nil {
			h.mu.Unlock()
			t.Skip("no descriptor here")
		}
		require.False(t, d.isRinging, "the goroutine of the set descriptor waits")
		now := h.now()
		a.when = now
		d.setTarget(now, now)
		h.mu.Unlock()
		<-inFunction
		next.Reset(time.Duration(nearLimit))
		require.NotNil(t, h.armedDescriptor)
		require.False(t, h.armedDescriptor.isRinging)
	}
	close(release)
	next.Stop()
	h.release()
}

// After a guard had to ring, the timers are used without the descriptor for a while. Then
// a new descriptor is opened.
func TestHub_TheGuardRings(t *testing.T) {
	h := newHub()
	rang := false
	a, later := h.add(func() { rang = true }), h.add(func() {})
	a.Reset(time.Duration(nearLimit / 2))
	later.Reset(time.Duration(nearLimit))
	if h.armedDescriptor == nil {
		t.Skip("no descriptor here")
	}
	h.mu.Lock()
	now := h.now()
	a.when, h.timersMoment = now-guardAfter, now
	h.armedDescriptor.targetMoment.Store(a.when)
	h.mu.Unlock()
	h.onTimer()
	require.True(t, rang)
	require.Nil(t, h.descriptors[0])
	require.GreaterOrEqual(t, h.busyUntil, now+busyFor)
	require.Equal(t, later.when, h.armedMoment)
	a.Reset(time.Duration(nearLimit / 2))
	require.Nil(t, h.armedDescriptor, "the timers are used without the descriptor")
	a.Stop()
	later.Stop()
}

// While callbacks take long, guards are set soon after the descriptor's moment, unless rings
// are frequent.
func TestHub_CallbacksThatTakeLong(t *testing.T) {
	h := newHub()
	a := h.add(func() {})
	defer func() { a.Stop(); h.release() }()
	a.Reset(time.Duration(nearLimit / 2))
	if h.armedDescriptor == nil {
		t.Skip("no descriptor here")
	}
	require.Equal(t, a.when+guardAfter, h.timersMoment)
	h.expectLateRings()
	require.Equal(t, a.when+soonAfter, h.timersMoment)
	h.averageRingGap = 4 * minGap
	a.Reset(time.Duration(nearLimit / 4))
	require.Equal(t, a.when+guardAfter, h.timersMoment)
	h.averageRingGap, h.slowUntil = maxGap, 0
	a.Reset(time.Duration(nearLimit / 8))
	require.Equal(t, a.when+guardAfter, h.timersMoment)
}

// If the descriptor is not heard, although a proc is idle, the lookout rings.
func TestHub_TheLookoutRings(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with one proc there is no lookout
	h := newHub()
	rang := make(chan bool)
	a := h.add(func() { rang <- true })
	for range 20 {
		a.Reset(time.Duration(nearLimit / 2))
		h.mu.Lock()
		if h.lookout == nil {
			h.mu.Unlock()
			t.Skip("no descriptor here")
		}
		h.busyUntil, h.lateRingCount = 0, 0 // the machine may be busy
		now := h.now()
		h.alarms[0].when = now
		h.armForFirstAlarmLocked(now)
		require.NotNil(t, h.armedDescriptor)
		h.armedDescriptor.setTarget(now, now+int64(time.Hour))
		for _, guard := range h.currentTimers {
			guard.Stop()
		}
		h.mu.Unlock()
		<-rang
	}
	a.Stop()
	h.release()
}

// If the descriptor is late twice in a row, it is not used for a while. Each further late
// ring prolongs that time.
func TestHub_LateDescriptor(t *testing.T) {
	h := newHub()
	ring := func(at, late int64) {
		h.mu.Lock()
		h.alarms = []*hubAlarm{h.add(func() {})}
		h.ringAndUnlock(at+late, at)
	}
	const late = lateAfter + 1
	ring(0, late)
	require.Zero(t, h.busyUntil, "one late ring does not count")
	ring(10, 0)
	ring(20, late)
	require.Zero(t, h.busyUntil)
	ring(30, late)
	require.Equal(t, 30+late+busyFor, h.busyUntil)
	ring(40, late)
	require.Equal(t, 40+late+busyFor, h.busyUntil, "a further late ring prolongs the time")
}

// Frequent rings are at least a millisecond apart. Rare rings are exact.
func TestHub_FrequentRings(t *testing.T) {
	h := newHub()
	a := h.add(func() {})
	defer func() { a.Stop(); h.release() }()
	for rare := range 100 {
		h.mu.Lock()
		now := h.now()
		h.alarms = []*hubAlarm{a}
		a.when = now
		h.ringAndUnlock(now, now)()
		h.mu.Lock()
		h.alarms = []*hubAlarm{a}
		a.when = now + minGap/2
		h.busyUntil, h.lateRingCount = 0, 0 // the machine may be busy
		h.armForFirstAlarmLocked(now)
		if h.armedDescriptor == nil {
			h.mu.Unlock()
			t.Skip("no descriptor here")
		}
		switch at := h.armedDescriptor.targetMoment.Load(); {
		case rare < 30:
			require.Equal(t, now+minGap/2, at)
		case rare > 70:
			require.Equal(t, now+minGap, at)
		}
		h.mu.Unlock()
	}
}

// An alarm that is not after now rings at once, however recent the last ring is: its owner
// has work left.
func TestHub_WorkThatIsLeft(t *testing.T) {
	h := newHub()
	a := h.add(func() {})
	defer func() { a.Stop(); h.release() }()
	for range 100 { // frequent rings
		h.mu.Lock()
		now := h.now()
		h.alarms = []*hubAlarm{a}
		a.when = now
		h.ringAndUnlock(now, now)()
		h.mu.Lock()
		h.busyUntil, h.lateRingCount = 0, 0 // the machine may be busy
		for _, at := range []int64{now, now - 1, now - int64(time.Second)} {
			h.alarms = []*hubAlarm{a}
			a.when = at
			h.armForFirstAlarmLocked(now)
			if h.armedDescriptor == nil {
				h.mu.Unlock()
				t.Skip("no descriptor here")
			}
			require.Equal(t, at, h.armedDescriptor.targetMoment.Load())
		}
		h.mu.Unlock()
	}
}
