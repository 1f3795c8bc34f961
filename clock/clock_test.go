package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tickless/tickless/clock"
)

func TestSystem_AlarmFollowsTheBubblesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.System()
		start := clk.Now()
		var rang []time.Duration
		a := clk.NewAlarm(func() { rang = append(rang, clk.Now().Sub(start)) })
		time.Sleep(time.Hour)
		if len(rang) != 0 {
			t.Fatalf("an alarm that was never set rang at %v", rang)
		}
		a.Reset(time.Minute)
		a.Reset(3 * time.Minute) // replaces the first setting
		time.Sleep(time.Hour)
		a.Reset(time.Minute)
		a.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(rang) != 1 || rang[0] != time.Hour+3*time.Minute {
			t.Fatalf("rang at %v, want once at 1h3m", rang)
		}
	})
}
