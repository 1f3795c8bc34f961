package idle_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/idle"
)

// stoppedClock is the clock of a process that may be suspended. Alarms that are due
// meanwhile go off when the process continues.
type stoppedClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []*stoppedAlarm
}

type stoppedAlarm struct {
	c    *stoppedClock
	f    func()
	when time.Time // zero: not set
}

func (c *stoppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stoppedClock) NewAlarm(f func()) clock.Alarm {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &stoppedAlarm{c: c, f: f}
	c.alarms = append(c.alarms, a)
	return a
}

func (a *stoppedAlarm) Reset(d time.Duration) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.when = a.c.now.Add(d)
}

func (a *stoppedAlarm) Stop() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.when = time.Time{}
}

// leap advances the clock by d, and then calls the alarms that are due.
func (c *stoppedClock) leap(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	for i := 0; i < len(c.alarms); i++ {
		if a := c.alarms[i]; !a.when.IsZero() && !a.when.After(c.now) {
			a.when = time.Time{}
			c.mu.Unlock()
			a.f()
			c.mu.Lock()
			i = -1
		}
	}
	c.mu.Unlock()
}

// run moves the clock by d, in steps of 50 ms: the process runs, but alarms are late.
func (c *stoppedClock) run(d time.Duration) {
	for ; d > 0; d -= 50 * time.Millisecond {
		c.leap(50 * time.Millisecond)
	}
}

// A process is suspended for longer than the timeout. Then it reads the bytes that wait
// in its sockets before it evicts a connection.
func TestConns_AfterAPause(t *testing.T) {
	const timeout = 30 * time.Second
	clk := &stoppedClock{now: epoch}
	cs := idle.NewConns(timeout, idle.WithClock(clk))
	defer end(t, cs)
	busy, peer := pipe(t, cs)
	silent, _ := pipe(t, cs)
	clk.leap(timeout + timeout/2)
	require.Zero(t, cs.Stats().Evicted, "one more check")
	go peer.Write([]byte("x"))
	_, err := busy.Read(make([]byte, 1))
	require.NoError(t, err)
	clk.leap(timeout/4 + timeout/50)
	require.EqualValues(t, 1, cs.Stats().Evicted)
	_, err = silent.Write([]byte("x"))
	require.ErrorIs(t, err, idle.ErrIdle)
	clk.run(timeout - timeout/4)
	require.EqualValues(t, 2, cs.Stats().Evicted, "punctually from then on")
}

// If a check is much too late, a second check follows, but never a third.
func TestConns_OneMoreCheckOnly(t *testing.T) {
	const timeout = 30 * time.Second
	clk := &stoppedClock{now: epoch}
	cs := idle.NewConns(timeout, idle.WithClock(clk))
	defer end(t, cs)
	pipe(t, cs)
	clk.leap(2 * timeout)
	require.Zero(t, cs.Stats().Evicted)
	clk.leap(2 * timeout)
	require.EqualValues(t, 1, cs.Stats().Evicted)

	clk.run(timeout)
	pipe(t, cs)
	clk.run(timeout + timeout/50)
	require.EqualValues(t, 2, cs.Stats().Evicted, "a little late")
}

// While a process was suspended, its peers sent heartbeats. Then it gets time to read
// them, also for the leases that would have been due at the end of the pause, or soon
// after it.
func TestMonitor_AfterAPause(t *testing.T) {
	const timeout = 2 * time.Second
	clk := &stoppedClock{now: epoch}
	var expired []int
	m := idle.New(func(i int, _ time.Time) { expired = append(expired, i) }, idle.WithClock(clk))
	defer m.Close()
	var leases []*idle.Entry[int]
	for i := range 200 { // a heartbeat of one or the other each 10 ms
		lease, err := m.Watch(i, timeout)
		require.NoError(t, err)
		leases = append(leases, lease)
		clk.leap(10 * time.Millisecond)
	}
	for _, pause := range []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, time.Hour} {
		for i := range leases {
			require.True(t, leases[i].Touch())
			clk.leap(10 * time.Millisecond)
		}
		clk.leap(pause)
		for i, lease := range leases { // the heartbeats that waited, in half a second
			if i%4 == 0 {
				clk.leap(9 * time.Millisecond)
			}
			require.True(t, lease.Touch(), "%v, lease %d", pause, i)
		}
		require.Empty(t, expired)
	}
	clk.run(timeout + timeout/50)
	require.Len(t, expired, len(leases), "once they are silent")
}

// If a Conns is closed between a late check and the second check of a connection, it
// hands the connection back.
func TestConns_ClosedBetweenTheChecks(t *testing.T) {
	clk := &stoppedClock{now: epoch}
	cs := idle.NewConns(time.Minute, idle.WithClock(clk))
	c, _ := pipe(t, cs)
	clk.leap(time.Hour)
	require.Equal(t, []*idle.Conn{c}, openAfterClose(cs))
	require.Zero(t, cs.Stats().Evicted)
}
