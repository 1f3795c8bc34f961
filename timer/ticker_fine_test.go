package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A ticker with a period below a millisecond is not rounded to the Scheduler's tick, even
// after a Reset.
func TestTicker_TooFineForTheWheel(t *testing.T) {
	s := timer.New(timer.WithTick(time.Hour))
	defer s.Close()
	tk := s.NewTicker(50 * time.Microsecond)
	for range 100 {
		<-tk.C
	}
	tk.Reset(time.Microsecond)
	for range 10 {
		<-tk.C
	}
	st := s.Stats()
	require.EqualValues(t, 2, st.Started)
	require.EqualValues(t, 2, st.FellBack)
	require.Zero(t, st.Fired)
	require.Zero(t, s.Len())
	tk.Stop()
	tk.Stop()
	time.Sleep(time.Millisecond)
	require.Empty(t, tk.C)
	tk.Reset(time.Millisecond)
	require.Equal(t, 1, s.Len(), "a period of a millisecond must use the wheel")
	require.Empty(t, tk.C)
	tk.Reset(100 * time.Microsecond)
	require.Zero(t, s.Len())
	<-tk.C
	require.Empty(t, closeAll(s))
	tk.Stop()
	require.Empty(t, tk.C)
	require.Empty(t, s.Stats().HandedBack)
}

// With slack, a fast ticker stays in the wheel and shares wake-ups with other timers.
func TestTicker_FineWithSlack(t *testing.T) {
	s := timer.New(timer.WithTick(time.Hour), timer.WithSlack(0.1, time.Millisecond, time.Second))
	defer s.Close()
	s.NewTicker(time.Microsecond)
	require.Equal(t, 1, s.Len())
}
