package timer

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/internal/wheel"
	"github.com/tickless/tickless/timertest"
)

// alwaysHelped makes a Scheduler whose poller calls helpers whenever there is more to
// do, on however few procs.
func alwaysHelped(opts ...Option) *Scheduler {
	s := New(opts...)
	s.poller.mu.Lock()
	defer s.poller.mu.Unlock()
	s.poller.helpers.after, s.poller.helpers.most = -1, 4
	return s
}

// A helper does all that is due, and then what only moves.
func TestHelpers_DoWhatThePollerDoes(t *testing.T) {
	const far = 20_000
	s, clk := manual(4)
	for _, sh := range allShards(s)[:2] {
		fillFar(t, sh, far)
	}
	clk.Advance(crossing - time.Millisecond)
	ran := 0
	for i := range 3 * shareSize {
		startOn(t, s.shards.at(1+i%3), time.Millisecond, func() {
			require.Less(t, s.Stats().Cascaded, uint64(far), "it comes before the moves")
			ran++
		})
	}
	clk.Advance(time.Millisecond)
	p := &s.poller
	p.helpers.most = 2
	p.running.Add(1)
	p.helpers.n.Inc()
	p.help(&drainer{p: p, helping: true})
	require.Equal(t, 3*shareSize, ran)
	require.EqualValues(t, 2*far, s.Stats().Cascaded)
	require.False(t, p.backlog.any())
	require.Zero(t, p.helpers.n.Load())
	require.NoError(t, p.running.Wait(t.Context()))
}

// What a helper leaves is done by the poller, though that sleeps.
func TestHelpers_LeaveTheRestToThePoller(t *testing.T) {
	clk := &creeping{Clock: timertest.NewClock(time.Unix(0, 0)), now: time.Unix(0, 0)}
	s := New(WithClock(clk), WithShards(1))
	fillFar(t, s.shards.at(0), 1000*batchSize)
	s.dispatch.mode = direct
	p := &s.poller
	p.helpers.most = 0
	clk.now = clk.now.Add(crossing)
	clk.step = 100 * time.Microsecond
	p.armed = never // as after a ring that found nothing else
	p.running.Add(1)
	p.helpers.n.Inc()
	began := clk.now
	p.help(&drainer{p: p, helping: true})
	require.Less(t, clk.now.Sub(began), turn+10*clk.step)
	require.True(t, p.backlog.any())
	require.LessOrEqual(t, p.armed, s.now())

	// And awake, it does not fall asleep before.
	p.awake = true
	p.running.Add(1)
	_, asleep := p.sleep(true, -1)
	require.False(t, asleep)
	clk.step = 0
	_, pause := p.work()
	require.Negative(t, pause)
	require.EqualValues(t, 1000*batchSize, s.shards.at(0).wheel.Cascaded())
	_, asleep = p.sleep(true, -1)
	require.True(t, asleep)
}

// The poller, asleep, is told of the buckets that a helper moves timers to.
func TestHelpers_WakeForWhatTheyMove(t *testing.T) {
	s, clk := manual(1)
	fillFar(t, s.shards.at(0), 2*batchSize)
	clk.Advance(crossing)
	p := &s.poller
	p.awake, p.armed = false, never
	p.running.Add(1)
	p.helpers.n.Inc()
	p.help(&drainer{p: p, helping: true})
	require.EqualValues(t, 2*batchSize, s.Stats().Cascaded)
	require.Greater(t, p.armed, s.now())
	require.LessOrEqual(t, p.armed, s.now()+int64(time.Second)+int64(DefaultTick))
}

// The poller has them called, and no more than there may be: a callback that one of
// them waits for is run by another.
func TestHelpers_AreCalled(t *testing.T) {
	s, clk := manual(4)
	p := &s.poller
	p.helpers.after, p.helpers.most = -1, 2
	other := make(chan struct{})
	var ran atomic.Int64
	const n = 16 * shareSize
	for i := range n {
		startOn(t, s.shards.at(i%4), time.Millisecond, func() {
			require.LessOrEqual(t, p.helpers.n.Load(), int32(2))
			switch ran.Inc() {
			case 1:
				<-other
			case 2:
				close(other)
			}
		})
	}
	clk.Advance(time.Millisecond)
	_, pause := p.work()
	require.Negative(t, pause)
	p.flush()
	require.NoError(t, p.running.Wait(t.Context()))
	require.EqualValues(t, n, ran.Load())
	require.EqualValues(t, n, s.Stats().Fired)
	require.Zero(t, p.helpers.n.Load())
}

// A helper that takes a shard's last timers away tells the poller, asleep, that the
// bucket it sleeps on may be gone.
func TestHelpers_TellOfAShardThatIsEmpty(t *testing.T) {
	s, clk := manual(1)
	sh := s.shards.at(0)
	dead := s.AfterFunc(time.Hour, func() {})
	dead.Reset(time.Hour)
	startOn(t, sh, time.Millisecond, func() {})
	require.True(t, dead.Stop())
	require.Equal(t, 2, sh.wheel.Len(), "its entry goes with the last of the others")
	clk.Advance(time.Millisecond)
	p := &s.poller
	_, b, queued := p.next(false)
	require.True(t, queued)
	p.awake, p.armed = false, s.now()+int64(time.Hour)
	d := &drainer{p: p, helping: true}
	d.drain(sh, b, queued)
	d.flush()
	require.Zero(t, sh.wheel.Len())
	require.LessOrEqual(t, p.armed, s.now()+int64(lookAfter))
}

// The user's handler of late timers may end a helper's goroutine, also with more to do on
// the same shard.
func TestHelpers_EndedByAHandler(t *testing.T) {
	for _, n := range []int{10, 10 * batchSize} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { testHelperEndedByAHandler(t, n) })
	}
}

func testHelperEndedByAHandler(t *testing.T, n int) {
	var told atomic.Int64
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithShards(1), WithLateHandler(time.Nanosecond, func(LateTimer) {
		told.Inc()
		runtime.Goexit()
	}))
	s.dispatch.mode = direct
	p := &s.poller
	p.awake = true
	var ran atomic.Int64
	for range n {
		startOn(t, s.shards.at(0), time.Millisecond, func() { ran.Inc() })
	}
	clk.Advance(time.Second)
	p.running.Add(1)
	p.helpers.n.Inc()
	go p.help(&drainer{p: p, helping: true})
	require.NoError(t, p.running.Wait(t.Context()))
	require.EqualValues(t, n, told.Load())
	require.EqualValues(t, n, ran.Load())
	require.Zero(t, p.helpers.n.Load())
}

// Timers of all kinds on many shards, with helpers at every moment: each fires once or
// is stopped or handed back, never early, also if the Scheduler ends in the middle.
func TestHelpers_Stress(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for round := range rounds {
		s := alwaysHelped(WithShards(16), WithTick(10*time.Microsecond), WithWheelSize(16))
		s.shards.spread.Store(true)
		const goroutines, each = 8, 1500
		var fired, early, stopped atomic.Int64
		var wg sync.WaitGroup
		begin := time.Now()
		at := 20 * time.Millisecond // where most of them fall due
		for g := range goroutines {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for i := range each {
					due := at + time.Duration(rng.IntN(3))*time.Millisecond*time.Duration(rng.IntN(2))
					f := func() {
						fired.Inc()
						if time.Since(begin) < due {
							early.Inc()
						}
					}
					sh := s.shards.at(rng.IntN(16))
					sh.mu.Lock()
					d := due - time.Since(begin)
					id, err := sh.startLocked(s.now(), d, funcPayload(f), tagFunc)
					sh.unlock()
					if err != nil {
						require.ErrorIs(t, err, ErrClosed)
						return
					}
					if i%7 == 0 && id != (wheel.ID{}) {
						sh.mu.Lock()
						if sh.stopLocked(id) {
							stopped.Inc()
						}
						sh.unlock()
					}
				}
			})
		}
		if round%2 == 0 {
			wg.Wait()
			for s.Len() > 0 {
				time.Sleep(time.Millisecond)
			}
		} else {
			for s.Stats().Fired < goroutines*each/4 {
				runtime.Gosched()
			}
		}
		require.NoError(t, s.Shutdown(context.Background()))
		wg.Wait()
		st := s.Stats()
		require.Zero(t, early.Load())
		require.EqualValues(t, st.Fired, fired.Load())
		require.EqualValues(t, st.Stopped, stopped.Load())
		require.Equal(t, st.Started, st.Fired+st.Stopped+st.HandedBack)
		require.Zero(t, st.Pending)
		if round%2 == 0 {
			require.Zero(t, st.HandedBack)
		}
	}
}
