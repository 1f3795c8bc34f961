package delayqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
)

// A movedClock is a fakeClock that advances by a second after each reading, as if another
// goroutine advanced it.
type movedClock struct {
	*fakeClock
	at chan time.Time
}

type movedAlarm struct {
	clock.Alarm
	c movedClock
}

func (c movedClock) Now() time.Time {
	now := c.fakeClock.Now()
	c.Advance(time.Second)
	return now
}

func (c movedClock) NewAlarm(f func()) clock.Alarm { return movedAlarm{c.fakeClock.NewAlarm(f), c} }

func (a movedAlarm) Reset(d time.Duration) { a.c.at <- a.c.fakeClock.Now().Add(d) }
func (a movedAlarm) ResetAt(t time.Time)   { a.c.at <- t }

func TestTake_TheClockMovedBeforeTheAlarmIsSet(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := movedClock{newFakeClock(begin), make(chan time.Time, 1)}
	q := New[int](WithClock(clk))
	q.Offer(1, begin.Add(time.Hour))
	taken := make(chan error)
	go func() {
		_, err := q.Take(t.Context())
		taken <- err
	}()
	require.Equal(t, begin.Add(time.Hour), <-clk.at)
	clk.Advance(time.Hour)
	q.Offer(2, begin) // wakes the taker
	require.NoError(t, <-taken)
}
