package timer_test

import (
	"context"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// What falls back was not refused.
func TestStats_RejectedFullLeavesOutWhatFellBack(t *testing.T) {
	s := timer.New(timer.WithClock(timertest.NewClock(time.Unix(1e9, 0))), timer.WithMaxPending(1))
	_, err := s.Start(time.Hour, describedCallback)
	require.NoError(t, err)
	s.NewTimer(time.Hour)
	s.AfterFunc(time.Hour, describedCallback)
	s.NewTicker(time.Hour)
	ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_ = ctx.Done()
	st := s.Stats()
	require.EqualValues(t, 4, st.FellBack)
	require.Zero(t, st.Rejected)
	require.Zero(t, st.RejectedFull)
}

func slowKeyed(string, int) { time.Sleep(20 * time.Millisecond) }
func slowJob()              { time.Sleep(20 * time.Millisecond) }

// A slow callback has the name of the user's function, whatever it was started by.
func TestSchedulerRecent_SlowOnesHaveTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithCallbackTimes())
		defer s.Close()
		require.NoError(t, timer.NewKeyed(s, slowKeyed).Set("key", 1, time.Second))
		job, err := s.Every(2*time.Second, slowJob)
		require.NoError(t, err)
		time.Sleep(3500 * time.Millisecond)
		job.Stop()
		var names []string
		for _, c := range s.Recent().Slow {
			names = append(names, c.Function()[strings.LastIndexByte(c.Function(), '.')+1:])
		}
		require.Equal(t, []string{"slowKeyed", "slowJob"}, names)
	})
}

func TestSchedulerRecent_PanicsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithPanicHandler(func(any, []byte) {}))
		defer s.Close()
		s.AfterFunc(time.Second, func() { panic(strings.Repeat("é", 1<<20)) })
		time.Sleep(2 * time.Second)
		p := s.Recent().Panics[0]
		require.LessOrEqual(t, len(p.Value), 4100)
		require.True(t, strings.HasSuffix(p.Value, "é..."))
		require.LessOrEqual(t, len(p.Stack), 4100)
	})
}

// A late handler that ends its goroutine is called for the others all the same, also if
// they come in several batches.
func TestWithLateHandler_Goexit(t *testing.T) {
	for _, n := range []int{11, 1000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { testLateHandlerGoexit(t, n) })
	}
}

func testLateHandlerGoexit(t *testing.T, n int) {
	synctest.Test(t, func(t *testing.T) {
		told, ran := 0, 0
		s := timer.New(timer.WithExecutor(executor.NewInline()),
			timer.WithLateHandler(time.Millisecond, func(timer.LateTimer) {
				told++
				runtime.Goexit()
			}))
		defer s.Close()
		s.AfterFunc(time.Second, func() { time.Sleep(40 * time.Millisecond) })
		for range n {
			s.AfterFunc(time.Second+timer.DefaultTick, func() { ran++ })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, n, told)
		require.Equal(t, n, ran)
	})
}

// Whoever starts timers does not lend callbacks the profiler labels of his goroutine.
func TestScheduler_CallbacksHaveNoLabelsOfOthers(t *testing.T) {
	for name, opts := range map[string][]timer.Option{
		"own pool":   nil,
		"goroutines": {timer.WithExecutor(executor.NewGoroutines())},
	} {
		t.Run(name, func(t *testing.T) {
			s := timer.New(opts...)
			defer s.Close()
			labelled := make(chan bool)
			for _, d := range []time.Duration{0, time.Millisecond} {
				left := make(chan struct{}) // by this goroutine: what has the labels
				pprof.Do(t.Context(), pprof.Labels("request", "alice"), func(context.Context) {
					s.AfterFunc(d, func() {
						<-left
						var profile strings.Builder
						_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
						for _, g := range strings.Split(profile.String(), "\n\n") {
							if strings.Contains(g, "CallbacksHaveNoLabelsOfOthers.func1.1") {
								labelled <- strings.Contains(g, "alice")
								return
							}
						}
						labelled <- true // it must be found
					})
				})
				close(left)
				require.False(t, <-labelled, "after %v", d)
			}
		})
	}
}

func slowAgain() { time.Sleep(12 * time.Millisecond) }

// A slow callback has its function's name also if its run makes up for another, if its
// timer has fallen back, and while the execution is traced.
func TestRecent_NameOfASlowCallback(t *testing.T) {
	for _, what := range []string{"made up for", "fallen back", "traced"} {
		t.Run(what, func(t *testing.T) {
			s := timer.New(timer.WithCallbackTimes(), timer.WithMaxPending(1))
			switch what {
			case "made up for":
				_, err := s.Every(5*time.Millisecond, slowAgain, timer.OnOverrun(timer.Burst))
				require.NoError(t, err)
			case "fallen back":
				_, err := s.Start(time.Hour, func() {})
				require.NoError(t, err)
				s.AfterFunc(time.Millisecond, slowAgain)
				require.EqualValues(t, 1, s.Stats().FellBack)
			case "traced":
				if err := trace.Start(io.Discard); err != nil {
					t.Skip(err)
				}
				defer trace.Stop()
				_, err := s.Every(5*time.Millisecond, slowAgain)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool {
				return s.Stats().Callbacks.Ran.Count() > 3 || what == "fallen back" && s.Stats().Callbacks.Ran.Count() > 0
			},
				time.Minute, time.Millisecond)
			require.NoError(t, s.Shutdown(context.Background()))
			require.NotEmpty(t, s.Recent().Slow)
			for _, c := range s.Recent().Slow {
				require.Regexp(t, "slowAgain|TestRecent_NameOfASlowCallback", c.Function())
			}
		})
	}
}
