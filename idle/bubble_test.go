package idle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// What was closed in a bubble may be closed again, and waited for, when that is over.
func TestMonitor_ClosedInABubbleAndAgainOutside(t *testing.T) {
	for name, opts := range map[string][]idle.Option{"": nil, "panics": {idle.WithPanicHandler(func(any, []byte) {})}} {
		t.Run(name, func(t *testing.T) {
			var m *idle.Monitor[int]
			var e *idle.Entry[int]
			synctest.Test(t, func(t *testing.T) {
				m = idle.New(func(int, time.Time) {}, opts...)
				m.Watch(1, time.Minute)
				e, _ = m.Watch(2, 10*time.Hour)
				time.Sleep(time.Hour)
				require.NoError(t, m.Close())
			})
			require.NoError(t, m.Close())
			require.NoError(t, m.Shutdown(context.Background()))
			require.False(t, e.Touch())
			require.False(t, e.Stop())
			_, err := m.Watch(3, time.Second)
			require.ErrorIs(t, err, idle.ErrClosed)
		})
	}
}
