package idle_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// What was closed in a bubble may be closed again, and waited for, when that is over.
func TestMonitor_ClosedInABubbleAndAgainOutside(t *testing.T) {
	for name, opts := range map[string][]idle.MonitorOption{"": nil, "panics": {idle.WithPanicHandler(func(any, []byte) {})}} {
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

// What is touched elsewhere would be touched at another time.
func TestMonitor_OfAnotherBubble(t *testing.T) {
	const env = "TICKLESS_IDLE_BUBBLE"
	uses := map[string]func(*idle.Monitor[int], *idle.Entry[int]){
		"Watch":    func(m *idle.Monitor[int], _ *idle.Entry[int]) { m.Watch(2, time.Second) },
		"Touch":    func(_ *idle.Monitor[int], e *idle.Entry[int]) { e.Touch() },
		"Now":      func(m *idle.Monitor[int], _ *idle.Entry[int]) { m.Now() },
		"Close":    func(m *idle.Monitor[int], _ *idle.Entry[int]) { m.Close() },
		"Shutdown": func(m *idle.Monitor[int], _ *idle.Entry[int]) { m.Shutdown(context.Background()) },
	}
	if name := os.Getenv(env); name != "" {
		var m *idle.Monitor[int]
		var e *idle.Entry[int]
		synctest.Test(t, func(t *testing.T) {
			m = idle.New(func(int, time.Time) {})
			e, _ = m.Watch(1, time.Hour)
		})
		name, inside := strings.CutPrefix(name, "inside ")
		if inside {
			synctest.Test(t, func(t *testing.T) { uses[name](m, e) })
		} else {
			uses[name](m, e)
		}
		return
	}
	for name := range uses {
		for _, where := range []string{"", "inside "} {
			cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			cmd.Env = append(os.Environ(), env+"="+where+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, where+name)
			require.Contains(t, string(out), "fatal error: receive on synctest channel from outside bubble", where+name)
		}
	}
}
