package alarm

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/clock"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gone stops an alarm and calls Release.
func gone(a clock.Alarm) {
	a.Stop()
	Release()
}

func TestAlarm_NeverEarlyAndOnceASetting(t *testing.T) {
	rang := make(chan time.Time, 100)
	a := New(func() { rang <- time.Now() })
	defer gone(a)
	for _, d := range []time.Duration{-1, 0, 1, 50 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 100 * time.Millisecond} {
		start := time.Now()
		a.Reset(d)
		at := <-rang
		require.GreaterOrEqual(t, at.Sub(start), d)
	}
	require.Empty(t, rang)
}

func TestAlarm_ResetReplacesAndStopUnsets(t *testing.T) {
	rang := make(chan time.Time, 100)
	a := New(func() { rang <- time.Now() })
	defer gone(a)
	a.Reset(time.Hour)
	start := time.Now()
	a.Reset(time.Millisecond) // earlier
	require.GreaterOrEqual(t, (<-rang).Sub(start), time.Millisecond)
	for inTime := false; !inTime; {
		later := make(chan time.Time, 2)
		b := New(func() { later <- time.Now() })
		start := time.Now()
		b.Reset(20 * time.Millisecond)
		b.Reset(60 * time.Millisecond) // later
		// If the two Resets took 20 ms or more, the alarm may have gone off between them.
		inTime = time.Since(start) < 20*time.Millisecond
		if at := <-later; inTime {
			require.GreaterOrEqual(t, at.Sub(start), 60*time.Millisecond)
		}
		gone(b)
	}
	for inTime := false; !inTime; {
		stopped := make(chan time.Time, 1)
		b := New(func() { stopped <- time.Now() })
		start := time.Now()
		b.Reset(20 * time.Millisecond)
		b.Stop()
		b.Stop()
		inTime = time.Since(start) < 20*time.Millisecond
		time.Sleep(40 * time.Millisecond)
		if inTime {
			require.Empty(t, stopped)
			b.Reset(1)
			<-stopped
		}
		gone(b)
	}
}

func TestAlarm_SetFromItsOwnFunction(t *testing.T) {
	done := make(chan struct{})
	n := 0
	var a clock.Alarm
	a = New(func() {
		if n++; n == 1000 {
			close(done)
			return
		}
		a.Reset(time.Duration(n%3) * 10 * time.Microsecond)
	})
	defer gone(a)
	a.Reset(0)
	<-done
}

func TestAlarm_GoneFromItsOwnFunction(t *testing.T) {
	done := make(chan struct{})
	var a clock.Alarm
	a = New(func() { gone(a); close(done) })
	a.Reset(0)
	<-done
}

// Release does not hold the hub's lock while it closes the descriptor, because the
// descriptor's goroutine may wait for that lock.
func TestAlarm_GoneWhileItsGoroutineBegins(t *testing.T) {
	for range 5000 {
		a := New(func() {})
		a.Reset(time.Second)
		runtime.Gosched()
		gone(a)
	}
}

func TestAlarm_GoexitInItsFunction(t *testing.T) {
	rang := make(chan bool)
	a := New(func() { rang <- true; runtime.Goexit() })
	defer gone(a)
	for i := range 300 { // alternately with the descriptor and the timer
		a.Reset(time.Duration(i%3) * 100 * time.Microsecond)
		<-rang
	}
}

func TestAlarm_MovedFromManyGoroutines(t *testing.T) {
	rang := make(chan bool, 1)
	a := New(func() {
		select {
		case rang <- true:
		default:
		}
	})
	defer gone(a)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				switch {
				case i%7 == 0:
					a.Stop()
				default:
					a.Reset(time.Duration(i%50) * time.Microsecond)
				}
			}
		})
	}
	wg.Wait()
	a.Stop()
	select {
	case <-rang:
	default:
	}
	a.Reset(1)
	<-rang
}

func descriptors(t *testing.T) int {
	if runtime.GOOS != "linux" {
		t.Skip("counts descriptors in /proc")
	}
	es, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(es)
}

func TestAlarm_LeavesNothingBehind(t *testing.T) {
	warm := New(func() {}) // starts the runtime's network poller, which has descriptors
	warm.Reset(time.Second)
	gone(warm)
	calm := func() { // earlier tests may have left the process's hub busy
		h := processHub()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.busyUntil = 0
	}
	calm()
	isOpen := func() bool {
		h := processHub()
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.descriptors[0] != nil || h.lookout != nil
	}
	for isOpen() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * time.Duration(closeDelay)) // their goroutines close them
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	perHub := 1 // descriptors, each with a goroutine
	if runtime.GOMAXPROCS(0) > 1 {
		perHub = 2 // a lookout too
	}
	const n = 1000
	var as []clock.Alarm
	for range n {
		a := New(func() {})
		a.Reset(time.Second)
		as = append(as, a)
	}
	require.Equal(t, before+perHub, descriptors(t), "all alarms share them")
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+perHub)
	for _, a := range as[1:] {
		gone(a)
	}
	require.Equal(t, before+perHub, descriptors(t), "the last alarm still needs them")
	gone(as[0])
	for descriptors(t) > before || runtime.NumGoroutine() > goroutines {
		time.Sleep(time.Millisecond / 10)
	}
	// Even without Release, the hub closes its descriptor and ends its goroutine when no
	// alarm is set.
	var wg sync.WaitGroup
	wg.Add(n)
	for range n {
		var a clock.Alarm
		var set sync.Mutex
		set.Lock()
		a = New(func() { set.Lock(); a.Stop(); wg.Done() })
		a.Reset(0)
		set.Unlock()
	}
	wg.Wait()
	for descriptors(t) > before || runtime.NumGoroutine() > goroutines {
		time.Sleep(time.Millisecond)
	}
	// An alarm that is far away needs no goroutine and no descriptor.
	a := New(func() {})
	defer gone(a)
	a.Reset(time.Hour)
	require.Equal(t, before, descriptors(t))
	calm()
	a.Reset(time.Second)
	require.Equal(t, before+perHub, descriptors(t))
	a.Reset(time.Hour)
	for descriptors(t) > before || runtime.NumGoroutine() > goroutines {
		time.Sleep(time.Millisecond)
	}
}

// When Release has returned, the descriptor is closed.
func TestRelease_WaitsForTheDescriptor(t *testing.T) {
	a := New(func() {})
	a.Reset(time.Second) // the runtime's network poller has descriptors too
	gone(a)
	before := descriptors(t)
	for range 200 {
		a.Reset(time.Second)
		gone(a)
		require.LessOrEqual(t, descriptors(t), before)
	}
}

// While one function does not return, other functions are still called.
func TestAlarm_HeldUpInItsFunction(t *testing.T) {
	const calls = 20
	release := make(chan struct{})
	called := make(chan bool)
	a := New(func() { called <- true; <-release })
	for range calls {
		a.Reset(100 * time.Microsecond)
		<-called
	}
	gone(a)
	close(release)
}
