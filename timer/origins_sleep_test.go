package timer_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// A goroutine that has no function but the Scheduler's own has that one as its origin.
func TestWithOrigins_OfGoStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithOrigins(1))
		go s.Sleep(time.Hour)
		go func() { _ = s.SleepContext(t.Context(), 2*time.Hour) }()
		synctest.Wait()
		origins := make(map[string]bool)
		for p := range s.PendingTimers() {
			f, ok := p.Origin()
			require.True(t, ok)
			require.NotZero(t, f.Line)
			origins[f.Function[strings.LastIndexByte(f.Function, '/')+1:]] = true
		}
		require.Equal(t, map[string]bool{
			"timer.(*Scheduler).Sleep":                          true,
			"timer_test.TestWithOrigins_OfGoStatements.func1.1": true,
		}, origins)
		require.NoError(t, s.Close())
	})
}
