package idle

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
)

// manual is a clock that any goroutine may advance. Its alarms never go off.
type manual struct{ ns atomic.Int64 }

func (c *manual) Now() time.Time              { return time.Unix(0, c.ns.Load()) }
func (c *manual) NewAlarm(func()) clock.Alarm { return silent{} }
func (silent) Reset(time.Duration)            {}
func (silent) Stop()                          {}

type silent struct{}

// contested is a watched thing. Touches, a stop and an eviction of it race.
type contested struct {
	touched atomic.Int64 // time of the latest touch that reported true
	evicted atomic.Int64
	since   atomic.Int64
	at      atomic.Int64
	stopped atomic.Bool
}

// Touches race with the decision to evict, millions of times. For speed, the test does
// not wait for timers, but calls checkEntryLocked itself.
func TestStress_TouchRacesTheDecision(t *testing.T) {
	d := time.Second
	if os.Getenv("TICKLESS_STRESS") == "long" {
		d = 2 * time.Minute
	}
	var touches atomic.Int64
	var rearmed, evictions, stops uint64
	for end := time.Now().Add(d); time.Now().Before(end); {
		st := decisionRound(t, &touches)
		rearmed, evictions, stops = rearmed+st.Rearmed, evictions+st.Evicted, stops+st.Stopped
	}
	t.Logf("%d touches, %d rearmed, %d evicted, %d stopped", touches.Load(), rearmed, evictions, stops)
}

func decisionRound(t *testing.T, touches *atomic.Int64) Stats {
	const things, timeout = 2000, 1000
	clk := &manual{}
	m := New(func(x *contested, since time.Time) {
		x.at.Store(clk.ns.Load())
		x.since.Store(since.UnixNano())
		x.evicted.Inc()
	}, WithClock(clk), WithTick(1), WithSlackShare(0))
	entries := make([]*Entry[*contested], things)
	for i := range entries {
		e, err := m.Watch(&contested{}, timeout)
		require.NoError(t, err)
		e.value.touched.Store(int64(e.Last()))
		entries[i] = e
	}
	// front is the index of the entry that all goroutines use. It advances when this
	// entry is evicted or stopped.
	var front atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { // touches
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			n := int64(0)
			for i := front.Load(); i < things; i = front.Load() {
				e, at := entries[i], m.Now()
				// Advance the clock, so that the other goroutine may evict the entry first.
				clk.ns.Add(rng.Int64N(2 * timeout))
				if e.TouchAt(at) {
					n++
					for {
						old := e.value.touched.Load()
						if int64(at) <= old || e.value.touched.CompareAndSwap(old, int64(at)) {
							break
						}
					}
				} else {
					front.CompareAndSwap(i, i+1)
				}
				if rng.IntN(2000) == 0 && e.Stop() {
					e.value.stopped.Store(true)
				}
			}
			touches.Add(n)
		})
	}
	wg.Go(func() { // expires
		for i := front.Load(); i < things; i = front.Load() {
			e := entries[i]
			st := e.stripe
			st.mu.Lock()
			var last Moment
			idle := false
			if e.next != nil {
				st.removeFromRingLocked(&e.entry)
				last, idle = st.checkEntryLocked(&e.entry, false)
			}
			st.mu.Unlock()
			if idle {
				m.submitCallback(&e.entry, last)
			}
		}
	})
	wg.Wait()
	st := m.Stats()
	require.EqualValues(t, things, st.Evicted+st.Stopped)
	for _, e := range entries {
		x := e.value
		require.LessOrEqual(t, x.touched.Load(), int64(e.Last()), "a touch was undone")
		if x.stopped.Load() {
			require.Zero(t, x.evicted.Load(), "evicted after a stop")
			continue
		}
		require.EqualValues(t, 1, x.evicted.Load())
		require.EqualValues(t, e.Last(), x.since.Load())
		require.LessOrEqual(t, x.touched.Load(), x.since.Load(), "a touch was ignored")
		require.GreaterOrEqual(t, x.at.Load(), x.since.Load()+timeout, "early")
	}
	m.Close()
	for range m.TakeLeftover() {
		t.Error("an entry is left over, although all were evicted or stopped")
	}
	return st
}

// If Close comes between an entry's check and the start of its new timer, TakeLeftover
// returns the entry.
func TestMonitorClose_WhileAnEntryIsRearmed(t *testing.T) {
	clk := &manual{}
	m := New(func(int, time.Time) { t.Error("evicted") }, WithClock(clk))
	e, err := m.Watch(1, time.Second)
	require.NoError(t, err)
	clk.ns.Add(int64(time.Second))
	require.True(t, e.Touch())
	m.scheduler.Close() // the first step of Close, as checkAll sees it
	for p := range m.scheduler.TakeLeftover() {
		p.Func()
	}
	require.False(t, e.Touch())
	m.Close()
	left := slices.Collect(m.TakeLeftover())
	require.Equal(t, []*Entry[int]{e}, left)
	require.EqualValues(t, 1, m.Stats().HandedBack)
}

// While another goroutine is in Close, Shutdown waits until TakeLeftover can return all
// entries.
func TestMonitorShutdown_WhileAnotherCloses(t *testing.T) {
	m := New(func(int, time.Time) { t.Error("evicted") })
	e, err := m.Watch(1, time.Hour)
	require.NoError(t, err)
	st := e.stripe
	st.mu.Lock() // delays the other Close before it hands the entry back
	var closed sync.WaitGroup
	closed.Go(func() { m.Close() })
	for !m.closed.Load() {
		runtime.Gosched()
	}
	left := make(chan []*Entry[int])
	go func() {
		m.Shutdown(context.Background())
		left <- slices.Collect(m.TakeLeftover())
	}()
	select {
	case early := <-left:
		t.Errorf("Shutdown returned before TakeLeftover had all entries: %v", early)
		st.mu.Unlock()
	case <-time.After(50 * time.Millisecond):
		st.mu.Unlock()
		require.Equal(t, []*Entry[int]{e}, <-left)
	}
	closed.Wait()
}
