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
			h.moveLocked(hanging[i], at) // those that hang come first
			h.moveLocked(others[i], at+1)
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
	var ends []<-chan struct{}
	for i := range hanging {
		<-others[i].Close()
		ends = append(ends, hanging[i].Close())
	}
	close(release)
	for _, end := range ends {
		<-end
	}
}

// When functions are called, the hub is armed for those that are not due.
func TestHub_ArmedBeforeFunctionsRun(t *testing.T) {
	h := newHub()
	var next *member
	armed := make(chan bool, 2)
	check := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		armed <- h.armed == next.when && h.timerAt == next.when-soonEnough
	}
	next = h.add(func() {})
	due := []*member{h.add(check), h.add(check)}
	next.Reset(time.Hour) // long after the test
	h.mu.Lock()
	for _, m := range due {
		h.moveLocked(m, h.now())
	}
	h.ringLocked(h.now()).call()
	require.True(t, <-armed)
	require.True(t, <-armed)
	<-next.Close()
}

// Who is not the first costs the runtime nothing.
func TestHub_OnlyTheFirstMovesTheTimer(t *testing.T) {
	h := newHub()
	first, other := h.add(func() {}), h.add(func() {})
	first.Reset(time.Minute)
	untouched := func(what string, change func()) {
		t.Helper()
		h.mu.Lock()
		at := h.timerAt
		require.True(t, h.timer.t.Stop())
		h.mu.Unlock()
		change()
		h.mu.Lock()
		defer h.mu.Unlock()
		require.False(t, h.timer.t.Stop(), what)
		require.Equal(t, at, h.timerAt)
		h.timer.t.Reset(time.Minute)
	}
	untouched("later than the first", func() { other.Reset(2 * time.Minute) })
	untouched("moved", func() { other.Reset(3 * time.Minute) })
	untouched("stopped", other.Stop)
	untouched("closed", func() { other.Reset(time.Hour); other.Close() })
	untouched("not set", other.Stop)
	armed := func() int64 { // the descriptor has its linger, at the end of which this is written
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.armed
	}
	require.Equal(t, first.when, armed())
	first.Reset(time.Second)
	require.Equal(t, first.when, armed(), "earlier")
	first.Reset(time.Hour)
	require.Equal(t, first.when, armed(), "later")
	<-first.Close()
	require.Equal(t, never, h.armed)
	require.False(t, h.timer.t.Stop())
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
				<-a.Close()
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
	<-keeps.Close()
	<-stays.Close()
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
					<-a.Close()
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
	require.Equal(t, unset, a.index)
	b.Reset(time.Millisecond)
	<-late
	b.Reset(time.Hour)
	h.quiet()
	synctest.Test(t, func(*testing.T) { a.Close() })
	b.Reset(time.Millisecond)
	<-late
	<-b.Close()
	require.Empty(t, h.set)
}

// quiet waits until the hub has no goroutine and will have none before its first moment,
// which is far away. A closing then waits for nothing: inside a bubble it would do so by a
// channel of the bubble's.
func (h *hub) quiet() {
	for open := true; open; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		open = h.fd.isOpen()
		h.mu.Unlock()
	}
	<-h.add(func() {}).Close()
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
			<-other.Close()
		})
	}
}

// Closing the last alarm waits for what the hub's timers have started, be it that they
// were stopped or set again meanwhile.
func TestHub_CloseWaitsForTheTimers(t *testing.T) {
	h := newHub()
	gate, came := make(chan bool), make(chan bool)
	h.timer = newBell(h, func() {
		came <- true
		<-gate
		h.tick()
	})
	m := h.add(func() {})
	for range 3 { // three times it starts a goroutine, which has yet to begin
		h.mu.Lock()
		h.timer.reset(0)
		h.mu.Unlock()
		<-came
	}
	m.Reset(time.Hour) // for that the timer is set again
	done := m.Close()
	for left := range 3 {
		select {
		case <-done:
			t.Fatal("the alarm is closed while a goroutine of its hub's is under way")
		default:
		}
		gate <- true
		for running := 3; running > 2-left; runtime.Gosched() {
			h.mu.Lock()
			running = h.running
			h.mu.Unlock()
		}
	}
	<-done
	require.Zero(t, h.running)
	require.Empty(t, h.closers)
}

// Where others' rings are many there may be no moment without a goroutine of the hub's:
// closing waits for as many as were under way, not for that moment.
func TestHub_CloseWaitsForNoMoreThanWereUnderWay(t *testing.T) {
	h := newHub()
	m := h.add(func() {})
	h.mu.Lock()
	h.running = 2
	h.mu.Unlock()
	done := m.Close()
	for range 2 {
		select {
		case <-done:
			t.Fatal("the alarm is closed while a goroutine of its hub's is under way")
		default:
		}
		h.mu.Lock()
		h.running++ // another comes, and one ends
		h.endLocked()
		h.mu.Unlock()
	}
	select {
	case <-done:
	default:
		t.Fatal("the alarm waits for those that came later")
	}
	require.Equal(t, 2, h.running)
	require.Empty(t, h.closers)
}

// An alarm made outside may be closed in a bubble while its function is called: who closes
// the channel then is not of the bubble.
func TestClose_InsideABubbleWhileItsFunctionIsCalled(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	a := newHub().add(func() { close(begun); <-end })
	a.Reset(0)
	<-begun
	var done <-chan struct{}
	synctest.Test(t, func(t *testing.T) { done = a.Close() })
	select {
	case <-done:
		require.Fail(t, "the function is still called")
	default:
	}
	close(end)
	<-done
}
