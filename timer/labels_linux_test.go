package timer_test

import (
	"context"
	"errors"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// submits is an executor whose Submit runs the callback itself, or refuses it with err.
type submits struct{ err error }

func (e submits) Submit(f func()) error {
	if e.err == nil {
		f()
	}
	return e.err
}

// The library's goroutines do not have the profiler labels of the goroutine that started
// a timer.
func TestLabels_OfWhoStartsAreNotTheLibrarys(t *testing.T) {
	released, begun := make(chan struct{}), make(chan struct{}, 2)
	held := func() {
		begun <- struct{}{}
		<-released
	}
	onPoller := timer.New(timer.WithExecutor(submits{}))
	refused := timer.New(timer.WithExecutor(submits{errors.New("full")}))
	time.Sleep(200 * time.Millisecond) // until the descriptor of earlier alarms is closed
	var err [3]error
	pprof.Do(context.Background(), pprof.Labels("tenant", "acme"), func(context.Context) {
		_, err[0] = onPoller.Start(900*time.Millisecond, func() {})
		_, err[1] = onPoller.Start(0, held)
		_, err[2] = refused.Start(0, held)
	})
	require.Equal(t, [3]error{}, err)
	// A new goroutine has its creator's labels until it runs, so wait until both
	// callbacks have begun.
	<-begun
	<-begun
	var b strings.Builder
	seen := false
	for begin := time.Now(); !seen && time.Since(begin) < time.Second; time.Sleep(time.Millisecond) {
		b.Reset()
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		seen = strings.Contains(b.String(), "alarm.(*hub).wait")
	}
	for g := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(g, "acme") {
			t.Errorf("a goroutine has the labels of the goroutine that started a timer:\n%s", g)
		}
	}
	close(released)
	require.NoError(t, onPoller.Shutdown(context.Background()))
	require.NoError(t, refused.Shutdown(context.Background()))
	if !seen && !t.Failed() { // the goroutine may have ended already
		t.Skip("the goroutine that waits for the alarm was not found; other goroutines have no labels")
	}
}
