package timer_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A moment that has passed closes the channel, although a timer is pending for an earlier
// one, and has yet to come to the end of its tick or of its slack.
func TestDeadline_SetToNowBeforeItsTimerFires(t *testing.T) {
	for name, tt := range map[string]struct {
		opt  timer.Option
		wait time.Duration
		more time.Duration // no longer than a tick, or the slack
	}{
		"tick":  {timer.WithTick(10 * time.Millisecond), 5 * time.Millisecond, 2 * time.Millisecond},
		"slack": {timer.WithSlack(0.1, 0, 10*time.Second), 50 * time.Second, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(time.Unix(0, 0))
			s := timer.New(timer.WithClock(clk), tt.opt)
			defer s.Close()
			var d, asked timer.Deadline
			d.Init(s)
			asked.Init(s)
			for _, x := range []*timer.Deadline{&d, &asked} {
				x.Set(clk.Now().Add(tt.wait))
				x.Done()
			}
			done := d.Done()
			clk.Advance(tt.wait + tt.more)
			require.False(t, isClosed(done), "the timer has fired: choose other moments")
			d.Set(clk.Now())
			require.True(t, isClosed(done))
			require.ErrorIs(t, d.Err(), os.ErrDeadlineExceeded)
			require.True(t, isClosed(asked.Done()), "of a deadline that has passed")
		})
	}
}

// A deadline that is set to a nearer moment has that one's slack.
func TestDeadline_LateByItsOwnSlack(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithClock(clk), timer.WithSlack(0.1, 0, 10*time.Second))
	defer s.Close()
	for wait := 50 * time.Second; wait < 70*time.Second; wait += 1700 * time.Millisecond {
		var d timer.Deadline
		d.Init(s)
		d.Set(clk.Now().Add(wait))
		done := d.Done()
		clk.Advance(wait - 100*time.Millisecond)
		d.Set(clk.Now().Add(200 * time.Millisecond))
		clk.Advance(200*time.Millisecond - 1)
		require.False(t, isClosed(done))
		clk.Advance(1 + 20*time.Millisecond + timer.DefaultTick)
		require.True(t, isClosed(done))
		require.Error(t, d.Err())
	}
}

// A hasty clock's alarms ring a millisecond early.
type hasty struct{ *timertest.Clock }

func (c hasty) NewAlarm(f func()) clock.Alarm { return hastyAlarm{c.Clock.NewAlarm(f)} }

type hastyAlarm struct{ clock.Alarm }

func (a hastyAlarm) Reset(d time.Duration) {
	if d > time.Millisecond {
		d -= time.Millisecond
	}
	a.Alarm.Reset(d)
}

// What goes on by alarms of the clock's own is neither early nor lost where these are
// early.
func TestScheduler_ClosedWithAlarmsThatAreEarly(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := timer.New(timer.WithClock(hasty{clk}))
	var d timer.Deadline
	d.Init(s)
	d.Set(clk.Now().Add(time.Second))
	done := d.Done()
	ctx, cancel := s.WithTimeout(context.Background(), time.Second)
	defer cancel()
	expired := ctx.Done()
	s.Close()
	clk.Advance(time.Second - 1)
	require.False(t, isClosed(done))
	require.False(t, isClosed(expired))
	clk.Advance(1)
	require.True(t, isClosed(done))
	require.True(t, isClosed(expired))
}
