package jobs_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// virtual returns a Scheduler on a virtual clock.
func virtual(t testing.TB, opts ...timer.Option) (*timer.Scheduler, *timertest.Clock) {
	clk := timertest.NewClock(epoch)
	s := timer.New(append([]timer.Option{timer.WithClock(clk), timer.WithExecutor(executor.NewInline())}, opts...)...)
	t.Cleanup(func() { s.Close() })
	return s, clk
}

// closeAll closes s and returns the timers that were pending.
func closeAll(s *timer.Scheduler) []timer.Leftover {
	s.Close()
	return slices.Collect(s.TakeLeftover())
}

// balanced requires that no timer was lost or counted twice.
func balanced(t testing.TB, st timer.Stats) {
	t.Helper()
	require.Equal(t, st.Started, st.Fired+st.Stopped+st.HandedBack+st.FellBack+uint64(st.Pending), "%+v", st)
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if v := os.Getenv("TICKLESS_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TICKLESS_SEED")
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func executors() map[string]func() executor.Executor {
	return map[string]func() executor.Executor{
		"default":    func() executor.Executor { return nil },
		"inline":     func() executor.Executor { return executor.NewInline() },
		"goroutines": func() executor.Executor { return executor.NewGoroutines() },
		"pool":       func() executor.Executor { return executor.NewPool() },
	}
}
