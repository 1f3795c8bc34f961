package timer_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

// mayBlock is an executor that could block.
type mayBlock struct{}

func (e mayBlock) Submit(f func()) error {
	f()
	return nil
}

// No goroutine of the library's has the profiler labels of who happened to start a timer:
// not the one that waits for the alarm, and not the dispatcher.
func TestLabels_OfWhoStartsAreNotTheLibrarys(t *testing.T) {
	released, begun := make(chan struct{}), make(chan struct{}, 1)
	held := func() {
		begun <- struct{}{}
		<-released
	}
	dispatched := timer.New(timer.WithExecutor(mayBlock{}))
	time.Sleep(200 * time.Millisecond) // the descriptor of others is closed
	var err [2]error
	pprof.Do(context.Background(), pprof.Labels("tenant", "acme"), func(context.Context) {
		_, err[0] = dispatched.Start(900*time.Millisecond, func() {})
		_, err[1] = dispatched.Start(0, held)
	})
	require.Equal(t, [2]error{}, err)
	// A goroutine has the labels of who has made it until it gets to run.
	<-begun
	var b strings.Builder
	seen := false
	for begin := time.Now(); !seen && time.Since(begin) < time.Second; time.Sleep(time.Millisecond) {
		b.Reset()
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
		seen = strings.Contains(b.String(), "alarm.(*hub).block")
	}
	for g := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(g, "acme") {
			t.Errorf("a goroutine has the labels of who has started a timer:\n%s", g)
		}
	}
	close(released)
	require.NoError(t, dispatched.Shutdown(context.Background()))
	if !seen && !t.Failed() { // it has come and gone, if at all
		t.Skip("the others have no labels; the goroutine that waits for the alarm was not seen")
	}
}
