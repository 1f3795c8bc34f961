//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
)

// Random faults happen while tasks are scheduled, run and cancelled: answers are lost,
// and the server and the workers are frozen and killed.
func TestFault_Storm(t *testing.T) {
	long(t)
	x, s := onServer(t, "--appendonly", "yes", "--appendfsync", "always")
	x.torn = true
	p := newProxy(t, s.Addr)
	p.reply = func(b []byte) bool { return rand.IntN(40) != 0 }
	p.serve()
	o := x.order
	o.Addrs = []string{p.addr()}
	a := x.start(o)
	x.start(x.order)
	b := x.start(o)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for g := range 2 {
		all.Go(func() {
			for i := g * 1_000_000; ctx.Err() == nil; i += 20 {
				x.schedule(i, 20, soon(time.Second), "")
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	r := redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: 2})
	defer r.Close()
	c := newClient(r)
	var mu sync.Mutex
	removed, outcomes, unknown := make(map[string]bool), make(map[durable.Outcome]int), 0
	for g := range 4 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("cancel-%d-%d", g, i)
				out, n := sure(func() (durable.Outcome, error) {
					return c.Schedule(context.Background(), durable.Task{Key: key, Handler: "h", Body: []byte(bodyMark)}, durable.After(rand.N(200*time.Millisecond)))
				})
				if out != durable.Created {
					t.Errorf("%s: schedule: %v", key, out)
				}
				time.Sleep(rand.N(150 * time.Millisecond))
				out, m := sure(func() (durable.Outcome, error) { return c.Cancel(context.Background(), key) })
				mu.Lock()
				unknown += n + m
				outcomes[out]++
				if out == durable.Removed {
					removed[key] = true
				} else if out != durable.Stopping {
					x.mu.Lock()
					x.acked[key] = true
					x.mu.Unlock()
				}
				mu.Unlock()
			}
		})
	}
	for range 6 {
		time.Sleep(time.Second)
		switch rand.IntN(3) {
		case 0:
			_ = syscall.Kill(a.pid(), syscall.SIGSTOP)
			time.Sleep(2500 * time.Millisecond)
			_ = syscall.Kill(a.pid(), syscall.SIGCONT)
		case 1:
			s.Suspend()
			time.Sleep(time.Second)
			s.Resume()
		}
		if rand.IntN(2) == 0 && b.kill() {
			b = x.start(o)
		}
		s.Kill()
		x.kills++
		time.Sleep(100 * time.Millisecond)
		s.Restart()
	}
	cancel()
	all.Wait()
	st := x.done(60 * time.Second)
	after := 0
	for key := range removed {
		if x.l.count(key) > 0 {
			after++
		}
	}
	x.note("one answer in 40 lost, workers frozen and killed, the server frozen, and killed %d times; %d calls of Cancel removed, %d came while the task ran, %d too late; %d calls were asked for again",
		x.kills, outcomes[durable.Removed], outcomes[durable.Stopping], outcomes[durable.Absent], unknown)
	require.Positive(t, outcomes[durable.Removed])
	require.Positive(t, unknown)
	// A cancelled task may have run before, in an attempt whose lease has expired.
	require.LessOrEqual(t, after, int(st.Crashed))
}

// sure repeats f until its outcome is known, as a careful caller does. unknown is how
// often the outcome was unknown.
func sure(f func() (durable.Outcome, error)) (out durable.Outcome, unknown int) {
	out, err := f()
	for err != nil {
		var u *durable.UnknownError
		if !errors.As(err, &u) {
			time.Sleep(10 * time.Millisecond)
			out, err = f()
			continue
		}
		unknown++
		var all []durable.Outcome
		if all, err = u.Again(context.Background()); len(all) > 0 {
			out = all[0]
		}
	}
	return out, unknown
}
