//go:build unix

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

func onServer(t *testing.T, args ...string) (*trial, *redistest.Server) {
	t.Helper()
	s := redistest.Start(t, args...)
	return newTrial(t, s.Client(), s.Addr), s
}

// killsOne schedules tasks, waits until the worker is killed, and starts another worker.
// It checks that this worker runs the remaining tasks.
func (x *trial) killsOne(kills *atomic.Int32, how string) {
	x.Helper()
	x.schedule(0, 2000, soon(2*time.Second), "")
	x.eventually(20*time.Second, "the worker is killed", func() bool { return kills.Load() == 1 })
	x.start(x.order) // before the kill, this worker could run all tasks
	x.note("%s", how)
	st := x.done(20 * time.Second)
	require.Positive(x, st.Crashed) // done has compared the duplicates with this number
}

// behind starts a worker process that is connected through a proxy.
func (x *trial) behind(p *proxy, victim *atomic.Pointer[proc]) {
	x.Helper()
	p.serve()
	o := x.order
	o.Addrs = []string{p.addr()}
	victim.Store(x.start(o))
}

func TestFault_WorkerKilledInACallback(t *testing.T) {
	x, _ := onServer(t)
	a := x.start(x.order)
	var kills atomic.Int32
	x.l.setHook(func(_ string, pid int) {
		if pid == a.pid() && x.l.total() > 200 && a.kill() { // before the worker gets the answer
			kills.Add(1)
		}
	})
	x.killsOne(&kills, "worker process killed with -9 while it waited for an answer")
}

func TestFault_WorkerKilledBetweenClaimAndDispatch(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	var victim atomic.Pointer[proc]
	var kills, seen atomic.Int32
	p.reply = func(b []byte) bool {
		if v := victim.Load(); v != nil && bytes.Contains(b, []byte(bodyMark)) && seen.Add(1) > 20 && v.kill() {
			kills.Add(1)
			return false
		}
		return true
	}
	x.behind(p, &victim)
	x.killsOne(&kills, "worker process killed with -9 when the claim's answer was on its way")
}

func TestFault_WorkerKilledBetweenAnswerAndDone(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	var victim atomic.Pointer[proc]
	var kills, seen atomic.Int32
	p.request = func(b []byte) bool {
		// Of this worker's requests, only reports contain task keys: its handlers are too
		// short for lease extensions.
		if v := victim.Load(); v != nil && bytes.Contains(b, []byte(keyPrefix)) && seen.Add(1) > 20 && v.kill() {
			kills.Add(1)
			return false
		}
		return true
	}
	x.behind(p, &victim)
	x.killsOne(&kills, "worker process killed with -9 after the 2xx, its report on the way")
	require.Positive(t, x.dups, "the lost report's task must run again")
}

func TestFault_Zombie(t *testing.T) {
	x, _ := onServer(t)
	o := x.order
	o.Concurrency = 1
	a := x.start(o)
	frozen, release := make(chan string, 1), make(chan struct{})
	var once atomic.Bool
	x.l.setHook(func(key string, pid int) {
		if pid == a.pid() && once.CompareAndSwap(false, true) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			frozen <- key
			<-release
		}
	})
	x.schedule(0, 1, now, "")
	key := <-frozen
	x.start(x.order)
	x.eventually(20*time.Second, "another worker runs the task", func() bool { return x.l.count(key) == 2 })
	x.eventually(20*time.Second, "the task is done", func() bool {
		_, err := x.c.Get(context.Background(), key)
		return errors.Is(err, durable.ErrNotFound)
	})
	close(release) // the frozen worker gets its 2xx when it continues
	_ = syscall.Kill(a.pid(), syscall.SIGCONT)
	x.eventually(20*time.Second, "the frozen worker's report is refused", func() bool {
		st, err := x.c.Stats(context.Background())
		return err == nil && st.Refused > 0
	})
	x.note("worker process stopped past its lease and continued; its report was refused")
	st := x.done(20 * time.Second)
	require.Positive(t, st.Crashed)
	require.Positive(t, x.dups)
}

// The server sends a wake-up to a frozen worker. The wake-up's backup must wake the other
// worker, whose recheck comes only after a minute.
func TestFault_WorkerFrozenWithAWakeUp(t *testing.T) {
	x, _ := onServer(t)
	o := x.order
	o.Recheck = time.Minute
	a := x.start(o)
	time.Sleep(500 * time.Millisecond) // this worker gets the next wake-up
	x.start(o)
	time.Sleep(500 * time.Millisecond)
	for i := range 12 {
		require.NoError(t, syscall.Kill(a.pid(), syscall.SIGSTOP))
		x.schedule(i, 1, now, "")
		x.eventually(20*time.Second, "the other worker runs the task", func() bool { return x.l.total() == i+1 })
		require.NoError(t, syscall.Kill(a.pid(), syscall.SIGCONT))
		time.Sleep(300 * time.Millisecond) // the first worker waits again
	}
	x.note("a worker process is stopped while it waits, 12 times, beside one that continues")
	x.done(20 * time.Second)
	require.Zero(t, x.dups)
}

func TestFault_ClaimsAnswerLost(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	var dropped, seen atomic.Int32
	p.reply = func(b []byte) bool {
		if bytes.Contains(b, []byte(bodyMark)) && seen.Add(1)%10 == 0 && dropped.Load() < 30 {
			dropped.Add(1)
			return false
		}
		return true
	}
	p.serve()
	r := redis.NewClient(&redis.Options{Addr: p.addr()})
	defer r.Close()
	x.work(r, nil)
	const each = 3000
	for from := 0; dropped.Load() < 5 && from < 20*each; from += each { // a late worker claims rarely
		x.schedule(from, each, soon(3*time.Second), "")
		x.drain(30 * time.Second)
	}
	require.GreaterOrEqual(t, dropped.Load(), int32(5))
	x.note("%d answers to claims dropped, with their connections", dropped.Load())
	st := x.done(30 * time.Second)
	require.Zero(t, x.dups)
	require.Zero(t, st.Crashed, "a repeated claim must get the same tasks")
}

func TestFault_ClocksAnHourOff(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"Behind": time.Hour, "Ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			m.SetTime(time.Now().Add(ahead))
			go func() {
				defer close(ended)
				for ctx.Err() == nil {
					m.SetTime(time.Now().Add(ahead))
					time.Sleep(time.Millisecond)
				}
			}()
			defer func() { cancel(); <-ended }()
			x := newTrial(t, redis.NewClient(&redis.Options{Addr: m.Addr()}), m.Addr())
			x.l.ahead = ahead
			theirs := x.r.Time(ctx).Val()
			require.Greater(t, time.Until(theirs).Abs(), 59*time.Minute)
			x.note("clock of Redis (miniredis) %v from the workers'", ahead)
			x.work(x.r, nil)
			x.schedule(0, 500, func(i int) durable.When { return durable.After(time.Duration(i) * 4 * time.Millisecond) }, "")
			x.done(20 * time.Second)
			require.Zero(t, x.dups)
		})
	}
}

// The server's clock is set back and forward. No task may be lost. A task runs twice if
// the new time ends its lease.
func TestFault_ServersClockIsSet(t *testing.T) {
	m := miniredis.RunT(t)
	x := newTrial(t, redis.NewClient(&redis.Options{Addr: m.Addr()}), m.Addr())
	var last time.Time // when the clock was last set
	set := func(d time.Duration) {
		x.l.mu.Lock()
		defer x.l.mu.Unlock()
		x.l.ahead, last = d, time.Now()
		m.SetTime(last.Add(d))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	set(0)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			x.l.mu.Lock()
			m.SetTime(time.Now().Add(x.l.ahead))
			x.l.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	defer func() { cancel(); <-ended }()
	x.work(x.r, func(_ context.Context, d durable.Delivery) error {
		x.l.mu.Lock()
		due := d.Due
		if time.Since(last) < time.Second {
			due = time.Now().Add(x.l.ahead) // the worker may have claimed it earlier
		}
		x.l.mu.Unlock()
		x.l.note(d.Key, due, 0)
		return nil
	})
	spread := func(i int) durable.When { return durable.After(time.Duration(i%200) * 5 * time.Millisecond) }
	from := 0
	for _, d := range []time.Duration{-time.Hour, 0, time.Hour, -24 * time.Hour, 24 * time.Hour} {
		x.schedule(from, 200, spread, "")
		time.Sleep(300 * time.Millisecond)
		set(d)
		x.schedule(from+200, 200, spread, "")
		x.eventually(20*time.Second, "the tasks scheduled by the new clock are run", func() bool {
			for i := from + 200; i < from+400; i++ {
				if x.l.count(fmt.Sprint(keyPrefix, i)) == 0 {
					return false
				}
			}
			return true
		})
		from += 400
	}
	x.note("the clock of Redis (miniredis) is set by an hour and by a day, back and forward, 5 times; leases end when it is set forward")
	x.done(20 * time.Second)
}

func TestFault_PoisonPanics(t *testing.T) {
	x, _ := onServer(t)
	x.work(x.r, func(_ context.Context, d durable.Delivery) error {
		x.l.note(d.Key, d.Due, 0)
		if string(d.Body) == bodyMark+"panic" {
			panic("poison")
		}
		return nil
	}, durable.WithMaxAttempts(3))
	x.loose = true // failed attempts do not count as duplicates
	x.schedule(0, 10, now, "panic")
	x.schedule(10, 500, soon(time.Second), "")
	x.note("10 tasks whose handler panics")
	st := x.done(20 * time.Second)
	require.EqualValues(t, 10, st.Dead)
	require.Empty(t, x.lost)
	require.Equal(t, 20, x.dups, "three attempts each")
}

func TestFault_PoisonKillsItsProcess(t *testing.T) {
	x, _ := onServer(t)
	x.order.Lease = 500 * time.Millisecond
	x.schedule(0, 1, now, "exit")
	var info durable.Info
	deaths := 0
	p := x.start(x.order)
	x.eventually(40*time.Second, "the task is a dead letter", func() bool {
		if !p.alive() {
			if deaths++; deaths == 1 {
				// Schedule these tasks after the first crash: tasks that run beside the
				// poison task die with each process.
				x.schedule(1, 300, soon(3*time.Second), "")
			}
			p = x.start(x.order)
		}
		var err error
		info, err = x.c.Get(context.Background(), fmt.Sprint(keyPrefix, 0))
		return err == nil && info.State == durable.Dead
	})
	// On a busy machine a lease may expire while its worker is alive. This counts as a
	// crash too.
	require.Positive(t, deaths)
	require.LessOrEqual(t, deaths, durable.DefaultMaxCrashes)
	require.Equal(t, durable.DefaultMaxCrashes, info.Crashes)
	x.note("a task that kills its worker process: %d processes died, each was started again", deaths)
	st := x.done(30 * time.Second)
	require.GreaterOrEqual(t, st.Crashed, int64(3))
}

func TestFault_PoisonHangs(t *testing.T) {
	x, _ := onServer(t)
	x.order.Lease, x.order.Timeout = 300*time.Millisecond, 300*time.Millisecond
	x.start(x.order)
	x.schedule(0, 2, now, "hang")
	x.schedule(2, 500, soon(2*time.Second), "")
	x.note("2 tasks whose handler never returns, whatever its context")
	st := x.done(30 * time.Second)
	require.EqualValues(t, 2, st.Dead)
	require.GreaterOrEqual(t, st.Crashed, int64(6))
}
