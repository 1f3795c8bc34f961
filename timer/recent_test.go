package timer_test

import (
	"bytes"
	"errors"
	"runtime"
	"runtime/trace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A lazyClock's alarms ring later than they are set for.
type lazyClock struct {
	*timertest.Clock
	late time.Duration
}

func (c *lazyClock) NewAlarm(f func()) clock.Alarm { return &lazyAlarm{c.Clock.NewAlarm(f), c} }

type lazyAlarm struct {
	clock.Alarm
	c *lazyClock
}

func (a *lazyAlarm) Reset(d time.Duration) { a.Alarm.Reset(d + a.c.late) }

func TestSchedulerRecent_LateByTheAlarm(t *testing.T) {
	clk := &lazyClock{timertest.NewClock(time.Unix(1e9, 0)), 30 * time.Millisecond}
	var told []timer.LateTimer
	s := timer.New(timer.WithClock(clk), timer.WithLateHandler(25*time.Millisecond, func(l timer.LateTimer) { told = append(told, l) }))
	defer s.Close()
	start := clk.Now()
	s.AfterFunc(time.Second, describedCallback)
	s.NewTimer(time.Second + 10*time.Millisecond)
	clk.Advance(2 * time.Second)

	late := s.Recent().Late
	require.Equal(t, told, late)
	require.Len(t, late, 1, "the other is late by less than was asked for")
	require.Equal(t, start.Add(time.Second), late[0].Due)
	require.Equal(t, 30*time.Millisecond, late[0].Late())
	require.Equal(t, 30*time.Millisecond, late[0].ByAlarm)
	require.Equal(t, timer.KindFunc, late[0].Kind)
	require.True(t, strings.HasSuffix(late[0].Function(), ".describedCallback"))

	st := s.Stats()
	require.EqualValues(t, 2, st.Lateness.Count())
	require.Equal(t, 50*time.Millisecond, st.LateByAlarm)
	require.Zero(t, st.LateByPoller)
	require.InDelta(t, 0.05, st.Lateness.Sum(), 1e-9)
	require.Equal(t, 30*time.Millisecond, st.AlarmLateness.Max())
}

// What a callback holds up, where callbacks run on the poller, is the poller's part.
func TestSchedulerRecent_LateByThePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithExecutor(executor.NewInline()))
		defer s.Close()
		s.AfterFunc(time.Second, func() { time.Sleep(40 * time.Millisecond) })
		s.AfterFunc(time.Second+timer.DefaultTick, describedCallback)
		time.Sleep(2 * time.Second)
		late := s.Recent().Late
		require.Len(t, late, 1)
		require.Equal(t, 40*time.Millisecond-timer.DefaultTick, late[0].Late())
		require.Zero(t, late[0].ByAlarm)
		st := s.Stats()
		require.Zero(t, st.LateByAlarm)
		require.Equal(t, 40*time.Millisecond-timer.DefaultTick, st.LateByPoller)
	})
}

func TestSchedulerRecent_KeepsTheLatest(t *testing.T) {
	clk := &lazyClock{timertest.NewClock(time.Unix(1e9, 0)), 30 * time.Millisecond}
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	for i := range 40 {
		s.AfterFunc(time.Duration(i)*time.Second, describedCallback)
		clk.Advance(100 * time.Second)
	}
	late := s.Recent().Late
	require.Len(t, late, 16)
	for i := range late[1:] {
		require.True(t, late[i].Due.Before(late[i+1].Due))
	}
}

// Of very many that fire late at once it keeps the last, as if each had been told of.
func TestSchedulerRecent_KeepsTheLatestOfMany(t *testing.T) {
	lateOnes := func(opts ...timer.Option) []timer.LateTimer {
		clk := &lazyClock{timertest.NewClock(time.Unix(1e9, 0)), 30 * time.Millisecond}
		s := timer.New(append(opts, timer.WithClock(clk), timer.WithSlack(0.5, 0, 8*time.Millisecond))...)
		defer s.Close()
		for i := range 1000 {
			d := time.Second + time.Duration(i)*25*time.Microsecond // the last are less late
			switch i % 3 {
			case 0:
				s.AfterFunc(d, describedCallback)
			case 1:
				s.NewTimer(d)
			case 2:
				s.AfterFunc(d, func() {})
			}
		}
		clk.Advance(2 * time.Second)
		require.EqualValues(t, 1000, s.Stats().Fired)
		return s.Recent().Late
	}
	var told []timer.LateTimer
	want := lateOnes(timer.WithLateHandler(10*time.Millisecond, func(l timer.LateTimer) { told = append(told, l) }))
	require.Greater(t, len(told), 500)
	require.Less(t, len(told), 1000)
	require.Equal(t, told[len(told)-16:], want)
	require.Equal(t, want, lateOnes())
}

func TestWithCallbackTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithCallbackTimes(), timer.WithExecutor(executor.NewPool(executor.WithMaxWorkers(1))))
		defer s.Close()
		s.AfterFunc(time.Second, func() { time.Sleep(40 * time.Millisecond) })
		s.AfterFunc(time.Second, describedCallback)
		stop := make(chan struct{})
		s.AfterFunc(2*time.Second, func() { <-stop })
		s.AfterFunc(3*time.Second, runtime.Goexit) // it never gets to run, and then ends its worker
		time.Sleep(4 * time.Second)

		c := s.Stats().Callbacks
		require.EqualValues(t, 3, c.Waited.Count())
		require.Equal(t, 40*time.Millisecond, c.Waited.Max())
		require.EqualValues(t, 2, c.Ran.Count())
		require.Equal(t, 40*time.Millisecond, c.Ran.Max())
		require.Equal(t, 1, c.Running)
		slow := s.Recent().Slow
		require.Len(t, slow, 2)
		require.False(t, slow[0].Running)
		require.Equal(t, 40*time.Millisecond, slow[0].Took)
		require.Contains(t, slow[0].Function(), "TestWithCallbackTimes.")
		require.True(t, slow[1].Running)
		require.Equal(t, 2*time.Second, slow[1].Took)

		close(stop)
		synctest.Wait()
		require.Zero(t, s.Stats().Callbacks.Running)
		require.EqualValues(t, 4, s.Stats().Callbacks.Ran.Count())
	})
	require.Nil(t, timer.New().Stats().Callbacks)
}

func TestSchedulerRecent_Panics(t *testing.T) {
	for name, opts := range map[string][]timer.Option{
		"own":     nil,
		"inline":  {timer.WithExecutor(executor.NewInline())},
		"foreign": {timer.WithExecutor(executor.NewGoroutines())},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handled := 0
				s := timer.New(append(opts, timer.WithPanicHandler(func(any, []byte) { handled++ }))...)
				defer s.Close()
				for range 20 {
					s.AfterFunc(time.Second, func() { panic(errors.New("it broke")) })
					time.Sleep(2 * time.Second)
				}
				panics := s.Recent().Panics
				require.Len(t, panics, 16)
				require.Equal(t, "it broke", panics[0].Value)
				require.Contains(t, panics[0].Stack, "TestSchedulerRecent_Panics")
				require.True(t, panics[0].When.Before(panics[15].When))
				require.EqualValues(t, 20, s.Stats().Panicked)
				require.Equal(t, 20, handled)
			})
		})
	}
}

func TestStats_ExecutorAndRefused(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithMaxPending(2))
	for range 5 {
		_, _ = s.Start(time.Second, describedCallback)
	}
	clk.Advance(time.Second)
	require.NoError(t, s.Close())
	_, err := s.Start(time.Second, describedCallback)
	require.ErrorIs(t, err, timer.ErrClosed)
	st := s.Stats()
	require.EqualValues(t, 4, st.Rejected)
	require.EqualValues(t, 3, st.RejectedFull)
	require.EqualValues(t, 2, st.Executor.Run)
}

func TestStats_SlackUsed(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	_, err := s.StartWithin(time.Second, 100*time.Millisecond, describedCallback)
	require.NoError(t, err)
	var due time.Time
	for p := range s.PendingTimers() {
		due = p.Due
	}
	deadline := clk.Now().Add(time.Second)
	require.True(t, due.After(deadline))
	clk.Advance(2 * time.Second)
	require.Equal(t, due.Sub(deadline), s.Stats().SlackUsed)
}

func TestTrace_TasksAndRegions(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the tests are being traced")
	}
	var out bytes.Buffer
	require.NoError(t, trace.Start(&out))
	s := timer.New(timer.WithName("traced one"))
	ran := make(chan struct{})
	s.AfterFunc(time.Millisecond, func() { close(ran) })
	<-ran
	require.NoError(t, s.Shutdown(t.Context()))
	trace.Stop()
	for _, want := range []string{"traced one", "timer.callback", "timer.poll", "TestTrace_TasksAndRegions"} {
		require.True(t, bytes.Contains(out.Bytes(), []byte(want)), want)
	}
}

func TestHistogram_Buckets(t *testing.T) {
	clk := &lazyClock{timertest.NewClock(time.Unix(1e9, 0)), 3 * time.Millisecond}
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	for range 3 {
		s.AfterFunc(time.Second, describedCallback)
	}
	clk.Advance(2 * time.Second)
	clk.late = 0
	s.AfterFunc(time.Second, describedCallback)
	clk.Advance(2 * time.Second)
	l := s.Stats().Lateness
	var limits []time.Duration
	var counts []uint64
	for limit, n := range l.Buckets() {
		limits, counts = append(limits, limit), append(counts, n)
	}
	require.Equal(t, []uint64{1, 3}, counts)
	require.Zero(t, limits[0])
	require.GreaterOrEqual(t, limits[1], 3*time.Millisecond)
	require.LessOrEqual(t, limits[1], 3*time.Millisecond*9/8)
	for range l.Buckets() {
		break
	}
}

// A timer that is due when it is started is late by nothing that the alarm did.
func TestSchedulerStats_AlarmLatenessOfWhatIsDueAtOnce(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	clk.Advance(time.Hour)
	ran := false
	start(t, s, 0, func() { ran = true })
	clk.Advance(0)
	require.True(t, ran)
	require.Zero(t, s.Stats().AlarmLateness.Max())
}

// A panic has the time of the Scheduler's clock, as late timers have.
func TestSchedulerRecent_PanicsByItsClock(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithPanicHandler(func(any, []byte) {}))
	defer s.Close()
	start(t, s, time.Hour, func() { panic("on purpose") })
	clk.Advance(time.Hour)
	require.Len(t, s.Recent().Panics, 1)
	require.True(t, s.Recent().Panics[0].When.Equal(epoch.Add(time.Hour)))
}
