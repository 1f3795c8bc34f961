package timer

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/share"
	"github.com/tickless/tickless/timertest"
	"github.com/tickless/tickless/timingwheel"
)

func startOn(t testing.TB, sh *shard, d time.Duration, f func()) {
	t.Helper()
	now := sh.s.now()
	sh.mu.Lock()
	_, err := sh.startLocked(now, d, sh.slackFor(d), funcPayload(f), tagFunc)
	sh.unlock()
	require.NoError(t, err)
}

// turn is when the second slot of a wheel's third level begins. If many timers are in this
// slot, they move down at crossing, a quarter of the slot's length earlier.
const (
	turn     = slotsPerLevel * slotsPerLevel * DefaultTick
	crossing = turn * 3 / 4
)

// fillFar starts n timers on a shard. They move down from the third level at crossing.
func fillFar(t testing.TB, sh *shard, n int) {
	for i := range n {
		startOn(t, sh, turn+time.Second+time.Duration(i)*time.Microsecond, func() {})
	}
}

// manual returns a Scheduler on a virtual clock. Its poller works only when the test
// calls work.
func manual(shards int) (*Scheduler, *timertest.Clock) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()), WithShards(shards))
	for _, sh := range allShards(s) {
		sh.wheel = newWheel(&s.config, timingwheel.WithQueue(sh.queueBucket)) // without a phase
	}
	s.dispatcher.onlyPollerSubmits, s.dispatcher.batcher = false, executor.NewInline()
	s.poller.awake = true
	return s, clk
}

// A due timer of any shard comes before timers that only move down a level.
func TestPoller_DueBeforeMoves(t *testing.T) {
	const far, shards = 20_000, 4
	s, clk := manual(shards)
	for _, sh := range allShards(s)[:2] {
		fillFar(t, sh, far)
	}
	clk.Advance(crossing - 10*time.Millisecond)
	// These timers fall due when the far timers begin to move down. Half of them are in a
	// shard with far timers, half in a shard without.
	const probes = 2 * (batchSize + 100)
	for i := range probes {
		startOn(t, s.shards.shardAt(1+i%2), 10*time.Millisecond, func() {})
	}
	clk.Advance(10 * time.Millisecond)
	e := &s.poller.expirer
	worked, pause := e.work(s.moment())
	require.True(t, worked)
	require.Len(t, e.batch.callbacks, probes, "all due timers must fire")
	moved := s.Stats().Cascaded
	require.LessOrEqual(t, moved, uint64(movesBeforeCallbacks+4*batchSize), "and at most two batches of each bucket")
	require.Zero(t, pause, "the callbacks must run before the other moves")
	require.NotEmpty(t, e.shardsToMove)

	e.batch.callbacks = nil
	startOn(t, s.shards.shardAt(3), time.Millisecond, func() {})
	clk.Advance(time.Millisecond)
	_, pause = e.work(s.moment())
	require.Len(t, e.batch.callbacks, 1, "another falls due meanwhile")
	require.Zero(t, pause)
	require.GreaterOrEqual(t, s.Stats().Cascaded, moved+movesBeforeCallbacks, "callbacks must not put off the moves for ever")
	require.LessOrEqual(t, s.Stats().Cascaded, moved+movesBeforeCallbacks+batchSize)

	e.batch.callbacks = nil
	_, pause = e.work(s.moment())
	require.Negative(t, pause)
	require.EqualValues(t, 2*far, s.Stats().Cascaded, "in the end all far timers must move")
}

// While 20,000 timers move down a level, a due timer waits for few of them.
func TestPoller_ADueTimerWaitsForFewMoves(t *testing.T) {
	const far, most = 20_000, movesBeforeCallbacks + 2*batchSize
	s, clk := manual(1)
	sh, e := s.shards.shardAt(0), &s.poller.expirer
	fillFar(t, sh, far)
	clk.Advance(crossing - 10*time.Millisecond)
	startOn(t, sh, 10*time.Millisecond, func() {})
	clk.Advance(10 * time.Millisecond)
	e.work(s.moment())
	require.Len(t, e.batch.callbacks, 1, "it falls due as the others begin to move")
	require.Less(t, s.Stats().Cascaded, uint64(most))

	e.batch.callbacks = nil
	before := s.Stats().Cascaded
	require.Positive(t, e.drainShard(e.shardsToMove.pop(), s.moment()))
	startOn(t, sh, time.Millisecond, func() {})
	clk.Advance(time.Millisecond)
	e.work(s.moment())
	require.Len(t, e.batch.callbacks, 1, "it falls due while they move")
	require.Less(t, s.Stats().Cascaded-before, uint64(most))
	require.NotEmpty(t, e.shardsToMove)
}

// The poller clears a batch of expired timers before it uses the memory again.
func TestPoller_ABatchIsCleared(t *testing.T) {
	s, clk := manual(1)
	for range batchSize + 1 {
		startOn(t, s.shards.shardAt(0), time.Millisecond, func() {})
	}
	clk.Advance(time.Millisecond)
	s.poller.expirer.work(s.moment())
	require.Len(t, s.poller.expirer.batch.callbacks, batchSize+1)
	require.True(t, *s.poller.expirer.expiredBuf == expiredBatch{})
}

// Different shards move far timers down at different times, and need no extra wake-up for
// that.
func TestShard_Phases(t *testing.T) {
	for _, c := range []struct{ size, shards int }{{256, 16}, {256, 1}, {2, 16}, {4, 3}, {256, 512}} {
		s := New(WithClock(timertest.NewClock(time.Unix(0, 0))), WithShards(c.shards), WithWheelSize(c.size))
		large := DefaultTick * time.Duration(c.size*c.size) // a slot of the third level
		small := DefaultTick * time.Duration(c.size)        // a slot of the second level
		moments := map[time.Duration]bool{}
		for _, sh := range allShards(s) {
			for range batchSize { // a large bucket
				startOn(t, sh, 2*large, func() {})
			}
			next, ok := sh.wheel.Next()
			require.True(t, ok)
			at := time.Duration(next)
			if c.size > 2 {
				require.Zero(t, at%small, "with the slots of the second level")
			}
			require.LessOrEqual(t, at, 2*large)
			moments[at%large] = true
		}
		require.Len(t, moments, min(c.shards, c.size), "size %d, %d shards", c.size, c.shards)
		s.Close()
	}
}

// The poller takes one batch each time it locks a shard, and the shards alternate.
func TestPoller_BatchesAndTurns(t *testing.T) {
	s, clk := manual(3)
	for _, sh := range allShards(s)[:2] {
		fillFar(t, sh, 3*batchSize)
	}
	clk.Advance(crossing - time.Millisecond)
	for range 3 * batchSize {
		startOn(t, s.shards.shardAt(2), time.Millisecond, func() {})
	}
	e := &s.poller.expirer
	clk.Advance(time.Millisecond)
	cascaded := func() (n [3]uint64) {
		for i, sh := range allShards(s) {
			n[i] = sh.wheel.Cascaded()
		}
		return n
	}
	var taken int
	require.Equal(t, 3, e.expireDueBuckets(s.moment().nanos, false))
	for range 3 {
		before := cascaded()
		sh := e.shardsToFire[0]
		e.drainShard(e.shardsToFire.pop(), s.moment())
		n := cascaded()
		moved := n[0] + n[1] - before[0] - before[1]
		if sh.index == 2 {
			require.Zero(t, moved)
			require.Len(t, e.batch.callbacks, batchSize)
		} else {
			require.EqualValues(t, batchSize, moved)
		}
		taken++
	}
	require.Equal(t, 3, taken)
	indices := func(l shardList) (is []int) {
		for _, sh := range l {
			is = append(is, sh.index)
		}
		return is
	}
	require.Equal(t, []int{2}, indices(e.shardsToFire), "the shard whose timers are due")
	require.ElementsMatch(t, []int{0, 1}, indices(e.shardsToMove), "those whose timers only move")
	for range 2 {
		order := indices(e.shardsToMove)
		require.Positive(t, e.drainShard(e.shardsToMove.pop(), s.moment()))
		require.Positive(t, e.drainShard(e.shardsToMove.pop(), s.moment()))
		if len(e.shardsToMove) > 0 {
			require.Equal(t, order, indices(e.shardsToMove))
		}
	}
	require.Empty(t, e.shardsToMove)
	require.Positive(t, e.drainShard(e.shardsToFire.pop(), s.moment()))
	require.Positive(t, e.drainShard(e.shardsToFire.pop(), s.moment()))
	require.Empty(t, e.shardsToMove)
	require.Len(t, e.batch.callbacks, 3*batchSize)
}

// creeping is a clock that advances with each reading.
type creeping struct {
	clock.Clock
	now  time.Time
	step time.Duration
}

func (c *creeping) Now() time.Time {
	c.now = c.now.Add(c.step)
	return c.now
}

// The poller works for at most maxWorkTime. It stops earlier if callbacks wait and only
// moves are left.
func TestPoller_WorksForATurn(t *testing.T) {
	for _, step := range []time.Duration{0, 100 * time.Microsecond} {
		clk := &creeping{Clock: timertest.NewClock(time.Unix(0, 0)), now: time.Unix(0, 0)}
		s := New(WithClock(clk), WithExecutor(executor.NewInline()), WithShards(1))
		fillFar(t, s.shards.shardAt(0), 1000*batchSize)
		e := &s.poller.expirer
		s.poller.awake = true
		s.dispatcher.onlyPollerSubmits, s.dispatcher.batcher = false, executor.NewInline()
		clk.now = clk.now.Add(crossing)
		clk.step = step
		began := clk.now
		worked, pause := e.work(s.moment())
		require.True(t, worked)
		moved := s.shards.shardAt(0).wheel.Cascaded()
		if step == 0 {
			require.Negative(t, pause)
			require.Empty(t, e.shardsToMove)
			require.EqualValues(t, 1000*batchSize, moved)
		} else {
			require.Equal(t, breakTime, pause)
			require.NotEmpty(t, e.shardsToMove)
			require.Less(t, clk.now.Sub(began), maxWorkTime+10*step)
			require.Less(t, maxWorkTime, 10*time.Millisecond)

			// With one callback and many moves to do, the callback waits for few of them.
			clk.step = 0
			e.batch.callbacks = append(e.batch.callbacks, func() {})
			worked, pause = e.work(s.moment())
			require.True(t, worked)
			require.Zero(t, pause)
			require.Equal(t, moved+movesBeforeCallbacks, s.shards.shardAt(0).wheel.Cascaded())
		}
	}
}

// Many small buckets are due. The poller works for at most maxWorkTime, as in
// TestPoller_WorksForATurn.
func TestPoller_WorksForATurn_SmallBuckets(t *testing.T) {
	clk := &creeping{Clock: timertest.NewClock(time.Unix(0, 0)), now: time.Unix(0, 0)}
	s := New(WithClock(clk), WithExecutor(executor.NewInline()), WithShards(1))
	e := &s.poller.expirer
	s.poller.awake = true
	s.dispatcher.onlyPollerSubmits, s.dispatcher.batcher = false, executor.NewInline()
	const n = 5000
	for i := range n {
		startOn(t, s.shards.shardAt(0), time.Duration(i+1)*DefaultTick, func() {})
	}
	clk.now = clk.now.Add(time.Second)
	clk.step = 100 * time.Microsecond
	_, pause := e.work(s.moment())
	require.Equal(t, breakTime, pause)
	fired := s.Stats().Fired
	require.Less(t, fired, uint64(n))
	require.NotZero(t, fired)
	clk.step = 0
	_, pause = e.work(s.moment())
	require.Negative(t, pause)
	require.EqualValues(t, n, s.Stats().Fired)
}

// The poller's goroutine runs callbacks only after the poller is asleep. So another
// goroutine can be the poller meanwhile.
func TestPoller_RoleIsGivenAwayBeforeCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		var awake []bool
		release := make(chan struct{})
		sh := s.shards.shardAt(0)
		for range 3 {
			startOn(t, sh, time.Millisecond, func() {
				s.poller.mu.Lock()
				awake = append(awake, s.poller.awake)
				s.poller.mu.Unlock()
				<-release
			})
		}
		var ran atomic.Duration
		startOn(t, sh, 2*time.Millisecond, func() { ran.Store(time.Since(s.epoch)) })
		time.Sleep(time.Second)
		close(release)
		s.poller.mu.Lock()
		require.False(t, awake[0], "on the goroutine that was the poller")
		s.poller.mu.Unlock()
		require.Equal(t, 2*time.Millisecond, ran.Load(), "a callback must not wait for others that block")
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// Many timers fall due while others move down a level. Some callbacks panic, some call
// Goexit, and some block. All others run, and no timer is lost.
func TestPoller_FaultsInABurst(t *testing.T) {
	const n = 3 * submitSize
	var panics atomic.Int32
	s := New(WithTick(10*time.Microsecond), WithWheelSize(16), WithPanicHandler(func(any, []byte) { panics.Inc() }))
	var ran, ended atomic.Int32
	hang := make(chan struct{})
	at := time.Now().Add(60 * time.Millisecond)
	for i := range n {
		_, err := s.Start(time.Until(at), func() {
			ran.Inc()
			switch i % 10 {
			case 0:
				panic(i)
			case 1:
				runtime.Goexit()
			case 2:
				<-hang
			}
			ended.Inc()
		})
		require.NoError(t, err)
		_, err = s.Start(time.Until(at)+time.Duration(i)*20*time.Microsecond, func() { ran.Inc(); ended.Inc() })
		require.NoError(t, err)
	}
	want := int32(2 * n)
	for ran.Load() < want {
		time.Sleep(time.Millisecond) // no callback waits for those that hang
	}
	close(hang)
	require.NoError(t, s.Shutdown(context.Background()))
	st := s.Stats()
	require.EqualValues(t, want, ran.Load())
	require.EqualValues(t, (n+9)/10, panics.Load())
	require.EqualValues(t, want, st.Fired)
	require.Zero(t, st.Refused+uint64(st.Pending))
}

// Close or Shutdown comes while many timers move down a level. TakeLeftover returns the
// timers that have not fired.
func TestPoller_ClosedInTheMiddleOfACascade(t *testing.T) {
	n := 100_000
	for round := 0; round < 6; round++ {
		s := New(WithTick(10*time.Microsecond), WithWheelSize(16))
		// All timers are in one slot of the fourth level. Such slots expire every 41 ms.
		next := (time.Since(s.epoch)/(40960*time.Microsecond) + 3) * (40960 * time.Microsecond)
		var ran atomic.Int64
		for i := range n {
			due := next + time.Duration(i)*400*time.Nanosecond
			_, err := s.Start(due-time.Since(s.epoch), func() { ran.Inc() })
			require.NoError(t, err)
		}
		if time.Since(s.epoch) >= next { // too late: try again with fewer timers
			s.Close()
			n, round = max(1000, n*3/4), round-1
			continue
		}
		st := s.Stats()
		for ; st.Cascaded < uint64(n/10) && st.Pending > 0; st = s.Stats() {
			runtime.Gosched()
		}
		if st.Pending == 0 { // the poller was too late: all have fired without a move
			require.NoError(t, s.Shutdown(context.Background()))
			round--
			continue
		}
		if round%2 == 0 {
			require.NoError(t, s.Shutdown(context.Background()))
		}
		handedBack := 0
		for range leftoverOf(s) {
			handedBack++
		}
		require.NoError(t, s.Shutdown(context.Background()))
		st = s.Stats()
		require.EqualValues(t, n, st.Started)
		require.Equal(t, st.Started, st.Fired+st.HandedBack)
		require.EqualValues(t, st.HandedBack, handedBack)
		require.EqualValues(t, st.Fired, ran.Load())
	}
}

// GOMAXPROCS changes while timers fire.
func TestPoller_ProcsChange(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n = 20_000
	s := New()
	var ran, early atomic.Int32
	begin := time.Now()
	for i := range n {
		d := time.Duration(i) * 5 * time.Microsecond
		due := time.Since(begin) + d
		_, err := s.Start(d, func() {
			if time.Since(begin) < due {
				early.Inc()
			}
			ran.Inc()
		})
		require.NoError(t, err)
	}
	for procs := 1; ran.Load() < n; procs = procs%5 + 1 {
		runtime.GOMAXPROCS(procs)
		time.Sleep(time.Millisecond)
	}
	require.Zero(t, early.Load())
	require.NoError(t, s.Shutdown(context.Background()))
}

// A start that calls wake after Close does not set the alarm.
func TestPoller_ClosedStaysAsleep(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()))
	s.Close()
	s.poller.wake(int64(time.Hour))
	s.poller.wake(shardEmptied)
	_, set := clk.Next()
	require.False(t, set)
}

// While callbacks run one after another, the poller sleeps. If one is slow, others do not
// wait for it.
func TestPoller_SleepsWhileCallbacksRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		sh := s.shards.shardAt(0)
		startOn(t, sh, time.Hour, func() {})
		for range 10 {
			startOn(t, sh, time.Millisecond, func() {})
		}
		time.Sleep(time.Second)
		st := s.Stats()
		require.EqualValues(t, 10, st.Fired)
		require.EqualValues(t, 1, st.Wakeups, "short callbacks must not wake up the poller")

		began := time.Now()
		release := make(chan struct{})
		var ran, early atomic.Duration
		startOn(t, sh, time.Millisecond, func() { <-release })
		startOn(t, sh, time.Millisecond, func() { ran.Store(time.Since(began)) })
		time.Sleep(time.Millisecond)
		startOn(t, sh, time.Second, func() { early.Store(time.Since(began)) }) // before the next callback
		time.Sleep(time.Minute)
		require.LessOrEqual(t, ran.Load(), 2*time.Millisecond, "the pool's watchdog")
		require.Equal(t, time.Second+time.Millisecond, early.Load())
		close(release)
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// settings is a clock whose alarms only record what they are set for.
type settings struct {
	clock.Clock
	last time.Duration
}

func (c *settings) NewAlarm(func()) clock.Alarm { return c }
func (c *settings) Reset(d time.Duration)       { c.last = d }
func (c *settings) Stop()                       {}

// With a Pool, the poller asks for a ring at once while work is left, however much there
// is. Until the work is done, a callback that falls due meanwhile waits for few moves.
func TestPoller_RingsWhileWorkIsLeft(t *testing.T) {
	const far = 50_000
	clk := &settings{Clock: timertest.NewClock(time.Unix(0, 0))}
	manualClock := clk.Clock.(*timertest.Clock)
	s := New(WithClock(clk), WithExecutor(executor.NewInline()), WithShards(1))
	sh, e := s.shards.shardAt(0), &s.poller.expirer
	sh.wheel = newWheel(&s.config, timingwheel.WithQueue(sh.queueBucket)) // without a phase
	pool := executor.NewPool()
	s.dispatcher.onlyPollerSubmits, s.dispatcher.batcher, s.dispatcher.sharePool = false, pool, share.PoolOf(pool)
	fillFar(t, sh, far)
	manualClock.Advance(crossing - time.Second)
	startOn(t, sh, time.Second, func() {})
	manualClock.Advance(time.Second)
	for rings := 0; ; rings++ {
		require.LessOrEqual(t, rings, far/movesBeforeCallbacks)
		clk.last = -1
		s.poller.poll()
		if len(e.shardsToMove) == 0 {
			break
		}
		require.Zero(t, clk.last, "work is left")
		startOn(t, sh, DefaultTick, func() {}) // a callback for the next wake-up
		manualClock.Advance(DefaultTick)
	}
	require.EqualValues(t, far, s.Stats().Cascaded)
	require.NoError(t, s.Shutdown(context.Background()))
	require.NoError(t, pool.Shutdown(context.Background()))
}
