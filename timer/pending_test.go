package timer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func describedCallback() {}

func TestSchedulerPendingTimers_KindsAndFunctions(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	var due []time.Duration
	at := func(d time.Duration) time.Duration { due = append(due, d); return d }

	_, err := s.Start(at(time.Second), describedCallback)
	require.NoError(t, err)
	s.AfterFunc(at(2*time.Second), describedCallback)
	s.NewTimer(at(3 * time.Second))
	s.NewTicker(at(4 * time.Second))
	s.Every(at(5*time.Second), describedCallback)
	k := timer.NewKeyed(s, func(string, int) {})
	require.NoError(t, k.Set("key", 1, at(6*time.Second)))
	ctx, cancel := s.WithTimeout(context.Background(), at(7*time.Second))
	defer cancel()
	_ = ctx.Done()
	var d timer.Deadline
	d.Init(s)
	d.Set(clk.Now().Add(at(8 * time.Second)))
	d.Done()
	s.AfterFunc(at(10*time.Second), nil)

	const here = "github.com/tickless/tickless/timer_test."
	got := slices.SortedFunc(s.PendingTimers(), func(a, b timer.PendingTimer) int { return a.Due.Compare(b.Due) })
	require.Len(t, got, len(due))
	kinds := []timer.Kind{
		timer.KindFunc, timer.KindFunc, timer.KindChannel, timer.KindTicker, timer.KindJob,
		timer.KindKeyed, timer.KindContext, timer.KindDeadline, timer.KindFunc,
	}
	functions := []string{
		here + "describedCallback", here + "describedCallback", "", "", here + "describedCallback",
		here + "TestSchedulerPendingTimers_KindsAndFunctions.func", "", "", "",
	}
	for i, p := range got {
		require.Equal(t, clk.Now().Add(due[i]), p.Due)
		require.Equal(t, kinds[i], p.Kind)
		require.True(t, strings.HasPrefix(p.Function(), functions[i]), "%s is not %s", p.Function(), functions[i])
		require.Equal(t, functions[i] == "", p.Function() == "")
		_, ok := p.Origin()
		require.False(t, ok, "nobody asked for origins")
	}
}

func TestSchedulerPendingTimers_KindSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		go s.Sleep(time.Minute)
		synctest.Wait()
		for p := range s.PendingTimers() {
			require.Equal(t, timer.KindSleep, p.Kind)
		}
		require.Equal(t, 1, s.Len())
		s.Close()
	})
}

// The loop's body runs without a lock: it may stop what it is shown, and break.
func TestSchedulerPendingTimers_BodyMayUseTheScheduler(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithShards(4))
	defer s.Close()
	for i := range 5000 {
		s.AfterFunc(time.Duration(1+i)*time.Second, describedCallback)
	}
	n := 0
	for range s.PendingTimers() {
		s.AfterFunc(time.Hour, describedCallback).Stop()
		if n++; n == 3000 {
			break
		}
	}
	require.Equal(t, 3000, n)
	require.Equal(t, 5000, s.Len())
}

// What the loop's body has stopped does not come any more, but for the few that were looked
// at in the same hold of the lock.
func TestSchedulerPendingTimers_LooksAtFewAtATime(t *testing.T) {
	const pending, looked = 5000, 512
	s := timer.New(timer.WithClock(timertest.NewClock(time.Unix(1e9, 0))), timer.WithShards(1))
	defer s.Close()
	var all []timer.Handle
	for range pending {
		h, err := s.Start(time.Hour, describedCallback)
		require.NoError(t, err)
		all = append(all, h)
	}
	n := 0
	for range s.PendingTimers() {
		if n++; n == 1 {
			for _, h := range all {
				require.True(t, h.Stop())
			}
		}
	}
	require.LessOrEqual(t, n, looked)
}

func TestSchedulerSamplePending(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithShards(3))
	defer s.Close()
	require.Empty(t, s.SamplePending(10))
	for range 30 {
		s.AfterFunc(time.Minute, describedCallback)
	}
	require.Len(t, s.SamplePending(30), 30, "no more than asked for: all of them")
	require.Len(t, s.SamplePending(1000), 30)
	require.Empty(t, s.SamplePending(0))
	for range 40_000 {
		s.AfterFunc(time.Hour, nil)
	}
	sample := s.SamplePending(4000)
	require.InDelta(t, 4000, len(sample), 3)
	soon := 0
	for _, p := range sample {
		if p.Kind == timer.KindFunc && p.Function() != "" {
			soon++
		}
	}
	require.Less(t, soon, 40, "3 expected, of 30 among 40,030")
}

func TestSchedulerForecast(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	require.Equal(t, []timer.Window{{From: math.MinInt64, Until: math.MaxInt64}}, s.Forecast())

	var moved *timer.Timer
	for _, d := range []time.Duration{time.Millisecond, time.Second - 1, time.Second, 59 * time.Second, time.Hour} {
		moved = s.AfterFunc(d, describedCallback)
	}
	want := []timer.Window{
		{From: math.MinInt64, Until: time.Second, Timers: 2},
		{From: time.Second, Until: time.Minute, Timers: 2},
		{From: time.Minute, Until: math.MaxInt64, Timers: 1},
	}
	require.Equal(t, want, s.Forecast(time.Minute, time.Second, time.Minute), "in any order")

	// Later ones, and others stopped.
	moved.Reset(time.Second)
	want[1].Timers, want[2].Timers = 3, 0
	require.Equal(t, want, s.Forecast(time.Second, time.Minute))
	moved.Reset(2 * time.Hour)
	want[1].Timers, want[2].Timers = 2, 1
	require.Equal(t, want, s.Forecast(time.Second, time.Minute))
	moved.Stop()
	want[2].Timers = 0
	require.Equal(t, want, s.Forecast(time.Second, time.Minute))
	clk.Advance(30 * time.Second)
	require.Equal(t, 1, s.Forecast(time.Minute)[0].Timers)
}

// Of very many a forecast looks at 2,048: the bounds are six standard errors, which
// one of half a billion samples exceeds.
func TestSchedulerForecast_OfVeryMany(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithShards(5))
	defer s.Close()
	const n = 200_000
	in := [4]int{}
	for range n {
		d := time.Duration(rand.Int64N(int64(100 * time.Second)))
		if rand.IntN(2) == 0 {
			d = time.Duration(rand.Int64N(int64(100 * time.Hour)))
		}
		tm := s.AfterFunc(d, describedCallback)
		if rand.IntN(4) == 0 { // they leave holes
			tm.Stop()
			continue
		}
		switch {
		case d < 10*time.Second:
			in[0]++
		case d < 100*time.Second:
			in[1]++
		case d < 10*time.Hour:
			in[2]++
		default:
			in[3]++
		}
	}
	windows := s.Forecast(10*time.Second, 100*time.Second, 10*time.Hour)
	total := 0
	for i, w := range windows {
		p := float64(in[i]) / float64(s.Len())
		sigma := math.Sqrt(p*(1-p)/2048) * float64(s.Len())
		require.InDelta(t, in[i], w.Timers, 6*sigma+1)
		total += w.Timers
	}
	require.Equal(t, s.Len(), total)
}

func TestSchedulerLevels(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithTick(time.Millisecond), timer.WithWheelSize(16))
	defer s.Close()
	require.Empty(t, s.Levels())
	s.AfterFunc(5*time.Millisecond, describedCallback)
	s.AfterFunc(100*time.Millisecond, describedCallback)
	s.AfterFunc(101*time.Millisecond, describedCallback)
	slots := func(i int) []int {
		q := make([]int, 16)
		if i > 0 {
			q[i] = 1
		}
		return q
	}
	require.Equal(t, []timer.Level{
		{Slot: time.Millisecond, Queued: slots(5), Timers: 1},
		{Slot: 16 * time.Millisecond, Queued: slots(6), Timers: 2},
	}, s.Levels())
	clk.Advance(100 * time.Millisecond)
	require.Equal(t, []timer.Level{
		{Slot: time.Millisecond, Queued: slots(1), Timers: 1},
		{Slot: 16 * time.Millisecond, Queued: slots(0), Cascaded: 1},
	}, s.Levels())
}

func TestWithOrigins(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithOrigins(4))
	defer s.Close()
	leaker := func() { s.AfterFunc(time.Hour, describedCallback) }
	for range 400 {
		leaker()
		s.AfterFunc(time.Minute, describedCallback).Stop()
	}
	noted := 0
	for p := range s.PendingTimers() {
		if f, ok := p.Origin(); ok {
			noted++
			require.Equal(t, "github.com/tickless/tickless/timer_test.TestWithOrigins.func1", f.Function)
			require.True(t, strings.HasSuffix(f.File, "pending_test.go"), f.File)
			require.NotZero(t, f.Line)
		}
	}
	require.InDelta(t, 100, noted, 100, "one in four of 800, of which the other half was stopped")
	require.NotZero(t, noted)
	require.PanicsWithValue(t, "timer: WithOrigins: one in how many must be positive, got 0", func() {
		timer.New(timer.WithOrigins(0))
	})
}

func TestWithName(t *testing.T) {
	names := func() (names []string) {
		for s := range timer.Schedulers() {
			if strings.HasPrefix(s.Name(), "test ") {
				names = append(names, s.Name())
			}
		}
		return names
	}
	unnamed := timer.New()
	defer unnamed.Close()
	require.Empty(t, unnamed.Name())
	a, b := timer.New(timer.WithName("test a")), timer.New(timer.WithName("test b"))
	require.Equal(t, []string{"test a", "test b"}, names())
	b.Close()
	require.Equal(t, []string{"test a"}, names())
	c := timer.New(timer.WithName("test c"))
	defer c.Close()
	require.Equal(t, []string{"test a", "test c"}, names())
	for range timer.Schedulers() {
		a.Close()
		break
	}
	require.Equal(t, []string{"test c"}, names())
}

// The label is on the goroutine that runs a callback, be it a worker's or the one that
// the alarm has woken.
func TestWithName_LabelsGoroutines(t *testing.T) {
	s := timer.New(timer.WithName("test labels"))
	defer s.Close()
	labelled := make(chan bool)
	for _, d := range []time.Duration{0, time.Millisecond} {
		s.AfterFunc(d, func() {
			var profile strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
			for _, g := range strings.Split(profile.String(), "\n\n") {
				if strings.Contains(g, "TestWithName_LabelsGoroutines.func") {
					labelled <- strings.Contains(g, `"scheduler":"test labels"`)
					return
				}
			}
			labelled <- false
		})
		require.True(t, <-labelled, "after %v", d)
	}
}
