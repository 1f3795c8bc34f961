package timer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// However many Schedulers there are, they share one alarm.
func TestScheduler_ManyShareAnAlarm(t *testing.T) {
	goroutines, descriptors := settled(t)
	const n = 1000
	ss := make([]*timer.Scheduler, n)
	hs := make([]timer.Handle, n)
	for i := range ss {
		ss[i] = timer.New()
		hs[i] = start(t, ss[i], time.Minute, func() {})
	}
	released(t, "a minute away", goroutines, descriptors)
	var ran sync.WaitGroup
	ran.Add(n)
	for i, s := range ss {
		require.True(t, hs[i].Stop())
		start(t, s, time.Second, ran.Done)
	}
	released(t, "a second away", goroutines+1, descriptors+1)
	ran.Wait()
	for _, s := range ss {
		require.NoError(t, s.Shutdown(context.Background()))
	}
	released(t, "shut down", goroutines, descriptors)
}

// Schedulers are made, used and closed by many goroutines: no timer is lost, and
// nothing is left.
func TestScheduler_ManyComeAndGo(t *testing.T) {
	goroutines, descriptors := settled(t)
	var ran atomic.Int64
	var wg sync.WaitGroup
	const by, each = 8, 250
	for g := range by {
		wg.Go(func() {
			for i := range each {
				s := timer.New()
				done := make(chan struct{})
				start(t, s, time.Hour, func() {})
				start(t, s, time.Duration(i%5)*100*time.Microsecond, func() { ran.Inc(); close(done) })
				<-done
				if (i+g)%2 == 0 {
					s.Close()
				} else if err := s.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, by*each, ran.Load())
	released(t, "closed", goroutines, descriptors)
}
