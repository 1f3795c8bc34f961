package timer_test

import (
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func describedCallback() {}

func TestSchedulerPending_KindsAndFunctions(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	var due []time.Duration
	at := func(d time.Duration) time.Duration { due = append(due, d); return d }

	_, err := s.Start(at(time.Second), describedCallback)
	require.NoError(t, err)
	s.AfterFunc(at(2*time.Second), describedCallback)
	s.NewTimer(at(3 * time.Second))
	s.NewTicker(at(4 * time.Second))
	s.AfterFunc(at(10*time.Second), nil)

	const here = "github.com/tickless/tickless/timer_test."
	got := slices.SortedFunc(s.Pending(), func(a, b timer.PendingTimer) int { return a.Due.Compare(b.Due) })
	require.Len(t, got, len(due))
	kinds := []timer.Kind{
		timer.KindFunc, timer.KindFunc, timer.KindChannel, timer.KindTicker, timer.KindFunc,
	}
	functions := []string{
		here + "describedCallback", here + "describedCallback", "", "", "",
	}
	for i, p := range got {
		require.Equal(t, clk.Now().Add(due[i]), p.Due)
		require.Equal(t, kinds[i], p.Kind)
		require.True(t, strings.HasPrefix(p.Function(), functions[i]), "%s is not %s", p.Function(), functions[i])
		require.Equal(t, functions[i] == "", p.Function() == "")
	}
}

func TestSchedulerPending_OfSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		go s.Sleep(time.Minute)
		synctest.Wait()
		for p := range s.Pending() {
			require.Equal(t, timer.KindChannel, p.Kind)
		}
		require.Equal(t, 1, s.Len())
		s.Close()
	})
}

// The loop's body runs without a lock. It may stop the timers, and break.
func TestSchedulerPending_BodyMayUseTheScheduler(t *testing.T) {
	clk := timertest.NewClock(time.Unix(1e9, 0))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithShards(4))
	defer s.Close()
	for i := range 5000 {
		s.AfterFunc(time.Duration(1+i)*time.Second, describedCallback)
	}
	n := 0
	for range s.Pending() {
		s.AfterFunc(time.Hour, describedCallback).Stop()
		if n++; n == 3000 {
			break
		}
	}
	require.Equal(t, 3000, n)
	require.Equal(t, 5000, s.Len())
}

// The loop's body stops all timers. The iterator then returns only the few timers that it
// had already read.
func TestSchedulerPending_LooksAtFewAtATime(t *testing.T) {
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
	for range s.Pending() {
		if n++; n == 1 {
			for _, h := range all {
				require.True(t, h.Stop())
			}
		}
	}
	require.LessOrEqual(t, n, looked)
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

// The goroutine that runs a callback has the label, whether it is a worker of the pool or
// the alarm's goroutine.
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
