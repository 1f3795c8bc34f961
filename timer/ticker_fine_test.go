package timer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A ticker with a period below a millisecond ticks in its own time, however long the
// Scheduler's tick is.
func TestTicker_TooFineForTheWheel(t *testing.T) {
	s := timer.New(timer.WithTick(time.Hour))
	defer s.Close()
	tk := s.NewTicker(50 * time.Microsecond)
	for range 100 {
		<-tk.C
	}
	for _, d := range []time.Duration{time.Microsecond, 2 * time.Millisecond} {
		tk.Reset(d)
		for range 10 {
			<-tk.C
		}
	}
	st := s.Stats()
	require.EqualValues(t, 1, st.Started)
	require.EqualValues(t, 1, st.FellBack)
	require.Zero(t, st.Fired)
	require.Zero(t, s.Len())
	tk.Stop()
	tk.Stop()
	require.Empty(t, tk.C)
	tk.Reset(time.Microsecond)
	<-tk.C
	s.NewTicker(time.Millisecond)
	require.Equal(t, 1, s.Len(), "from a millisecond on the Scheduler's tick decides")
	handedBack := 0
	for range leftover(s) {
		handedBack++
	}
	require.Equal(t, 2, handedBack)
	time.Sleep(time.Millisecond)
	require.Empty(t, tk.C, "it has been stopped")
	tk.Reset(time.Microsecond)
	dead := s.NewTicker(time.Microsecond)
	time.Sleep(time.Millisecond)
	require.Empty(t, tk.C)
	require.Empty(t, dead.C)
	st = s.Stats()
	require.EqualValues(t, 2, st.Rejected)
	require.Equal(t, st.Started, st.FellBack+st.HandedBack)
}

// With slack it shares wake-ups with others.
func TestTicker_FineWithSlack(t *testing.T) {
	s := timer.New(timer.WithTick(time.Hour), timer.WithSlack(0.1, time.Millisecond, time.Second))
	defer s.Close()
	s.NewTicker(time.Microsecond)
	require.Equal(t, 1, s.Len())
}
