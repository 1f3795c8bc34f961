package timer_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// What reports on a Group's timers names the function that it was given.
func TestGroup_TimersHaveTheNameOfTheirFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithCallbackTimes())
		g := timer.NewGroup(s)
		for _, d := range []time.Duration{time.Second, time.Hour} {
			_, err := g.Start(d, slowJob)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		for p := range s.PendingTimers() {
			require.Equal(t, timer.KindFunc, p.Kind)
			require.True(t, strings.HasSuffix(p.Function(), ".slowJob"), p.Function())
		}
		slow := s.Recent().Slow
		require.Len(t, slow, 1)
		require.True(t, strings.HasSuffix(slow[0].Function(), ".slowJob"), slow[0].Function())

		require.NoError(t, s.Close())
		left := slices.Collect(s.Leftover())
		require.Len(t, left, 1)
		require.NotNil(t, left[0].Func)
		require.NotZero(t, left[0].Handle, "it names the timer, as that of Start does")
	})
}
