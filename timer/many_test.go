package timer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timer"
)

// All Schedulers share one alarm.
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

// Many goroutines make, use and close Schedulers. No timer is lost, and no resources
// remain.
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

// Schedulers in different bubbles, and one outside, do not affect each other's time or
// alarms.
func TestScheduler_BubblesBesideOthers(t *testing.T) {
	goroutines, descriptors := settled(t)
	outside := timer.New()
	hour := start(t, outside, time.Hour, func() { t.Error("a timer of an hour outside the bubbles has fired") })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				synctest.Test(t, func(t *testing.T) {
					s := timer.New(timer.WithTick(time.Millisecond))
					begin := time.Now()
					var after [3]time.Duration
					for i := range after {
						start(t, s, time.Duration(i+1)*time.Hour, func() { after[i] = time.Since(begin) })
					}
					time.Sleep(3 * time.Hour)
					synctest.Wait()
					require.Equal(t, [3]time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, after)
					require.NoError(t, s.Shutdown(context.Background()))
				})
			}
		})
	}
	for i := range 50 {
		begin := time.Now()
		rang := make(chan time.Duration)
		d := time.Duration(i%5) * 300 * time.Microsecond
		start(t, outside, d, func() { rang <- time.Since(begin) })
		require.GreaterOrEqual(t, <-rang, d)
	}
	wg.Wait()
	require.True(t, hour.Stop())
	require.NoError(t, outside.Shutdown(context.Background()))
	released(t, "shut down", goroutines, descriptors)
}
