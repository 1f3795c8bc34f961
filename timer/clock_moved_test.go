package timer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// A hurriedClock advances by a second at each reading. Its alarms go off only when the
// test calls their functions.
type hurriedClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []*hurriedAlarm
}

type hurriedAlarm struct {
	c    *hurriedClock
	f    func()
	when time.Time // zero if not set
}

func (c *hurriedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	c.now = now.Add(time.Second)
	return now
}

func (c *hurriedClock) NewAlarm(f func()) clock.Alarm {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &hurriedAlarm{c: c, f: f}
	c.alarms = append(c.alarms, a)
	return a
}

func (a *hurriedAlarm) Reset(d time.Duration) { a.set(func() time.Time { return a.c.now.Add(d) }) }
func (a *hurriedAlarm) ResetAt(t time.Time)   { a.set(func() time.Time { return t }) }
func (a *hurriedAlarm) Stop()                 { a.set(func() time.Time { return time.Time{} }) }

func (a *hurriedAlarm) set(when func() time.Time) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.when = when()
}

// next returns the alarms that are set, and the earliest time that one is set for.
func (c *hurriedClock) next() (set []*hurriedAlarm, first time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.alarms {
		if a.when.IsZero() {
			continue
		}
		if len(set) == 0 || a.when.Before(first) {
			first = a.when
		}
		set = append(set, a)
	}
	return set, first
}

// The clock moves on after it is read and before the alarm is set. The alarm still goes
// off by the timer's deadline.
func TestClock_MovedBeforeTheAlarmIsSet(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, begun := range map[string]func(t *testing.T, s *timer.Scheduler) (due time.Time){
		"start": func(t *testing.T, s *timer.Scheduler) time.Time {
			due, ok := start(t, s, time.Hour, func() {}).Deadline()
			require.True(t, ok)
			return due
		},
		"fallback": func(t *testing.T, s *timer.Scheduler) time.Time {
			start(t, s, 10_000*time.Hour, func() {}) // fills the limit
			due, ok := s.AfterFunc(time.Hour, func() {}).Deadline()
			require.True(t, ok)
			return due
		},
	} {
		t.Run(name, func(t *testing.T) {
			clk := &hurriedClock{now: begin}
			s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()), timer.WithMaxPending(1))
			defer s.Close()
			due := begun(t, s)
			for range 3 {
				set, first := clk.next()
				require.False(t, first.After(due), "the alarm is set for %v", first)
				for _, a := range set {
					a.f()
				}
			}
		})
	}
}
