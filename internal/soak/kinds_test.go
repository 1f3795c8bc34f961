package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/deadline"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// A kind is one sort of timers. Each step starts and stops some of them. longest is the
// longest delay.
type kind struct {
	name string
	// repeats is true if the timers start again by themselves.
	repeats bool
	step    func(l *ledger, rng *rand.Rand, longest time.Duration)
}

// delay returns a random delay. Short delays are more frequent.
func delay(rng *rand.Rand, longest time.Duration) time.Duration {
	d := time.Duration(rng.Int64N(int64(longest)))
	return d>>rng.IntN(8) + 1
}

// bag keeps up to bagSize things. If it is full, swap replaces a random thing and returns
// the old one.
type bag[T any] struct{ things []T }

const bagSize = 100

func (b *bag[T]) swap(rng *rand.Rand, v T) (out T, ok bool) {
	if len(b.things) < bagSize {
		b.things = append(b.things, v)
		return out, false
	}
	i := rng.IntN(len(b.things))
	out, b.things[i] = b.things[i], v
	return out, true
}

func handles(s *timer.Scheduler, start func(d time.Duration, f func()) (timer.Handle, error)) func(*ledger, *rand.Rand, time.Duration) {
	type held struct {
		n *note
		h timer.Handle
	}
	var pending bag[held]
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		d := delay(rng, longest)
		n := l.enter(d)
		h, err := start(d, n.fire)
		if err != nil {
			l.complain("%v", err)
		}
		x, ok := pending.swap(rng, held{n, h})
		switch {
		case !ok:
		case rng.IntN(3) == 0:
			d := delay(rng, longest)
			x.n.move(d, func() bool { return x.h.Move(d) })
		default:
			if x.n.stop(x.h.Stop) && x.h.Stop() {
				l.complain("stopped twice")
			}
		}
	}
}

func timers(s *timer.Scheduler) func(*ledger, *rand.Rand, time.Duration) {
	type held struct {
		n *note
		t *timer.Timer
	}
	var pending bag[*held]
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		d := delay(rng, longest)
		x := &held{n: l.enter(d)}
		x.t = s.AfterFunc(d, x.n.fire)
		for range 2 {
			d := delay(rng, longest)
			x.n.move(d, func() bool {
				if !x.t.Stop() {
					return false
				}
				x.t.Reset(d)
				return true
			})
		}
		if x, ok := pending.swap(rng, x); ok {
			x.n.stop(x.t.Stop)
		}
	}
}

func tickers(s *timer.Scheduler) func(*ledger, *rand.Rand, time.Duration) {
	type held struct {
		t      *timer.Ticker
		begin  time.Duration
		period time.Duration
		got    int
	}
	var all []*held
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		if len(all) < 100 && !l.ending.Load() {
			period := time.Millisecond + delay(rng, longest/4)
			begin := now()
			all = append(all, &held{t: s.NewTicker(period), begin: begin, period: period})
			return
		}
		if len(all) == 0 {
			return // the series is ending
		}
		i := rng.IntN(len(all))
		x := all[i]
		select {
		case <-x.t.C:
			x.got++
			n := l.enter(0)
			l.count(n.due, -1) // by the second of then, which may be over
			n.due = x.begin + time.Duration(x.got)*x.period
			l.count(n.due, 1)
			n.fire()
		default:
		}
		if rng.IntN(100) == 0 || l.ending.Load() {
			x.t.Stop()
			select {
			case <-x.t.C:
				l.complain("a tick after Stop")
			default:
			}
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
	}
}

func periodic(s *timer.Scheduler) func(*ledger, *rand.Rand, time.Duration) {
	type held struct {
		j    *jobs.Job
		over atomic.Bool
		runs atomic.Int64
	}
	var all []*held
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		ending := l.ending.Load()
		if len(all) == 50 || ending {
			if len(all) > 0 && (rng.IntN(100) == 0 || ending) {
				i := rng.IntN(len(all))
				all[i].j.Stop()
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			}
			return
		}
		period := 2*time.Millisecond + delay(rng, longest/4)
		x := new(held)
		at := now()
		j, err := jobs.Periodic(s, period, func() {
			if x.over.Swap(true) {
				l.complain("runs overlap")
			}
			n := l.enter(at + time.Duration(x.runs.Inc())*period - now())
			n.fire()
			x.over.Store(false)
		})
		if err != nil {
			l.complain("%v", err)
			return
		}
		x.j = j
		all = append(all, x)
	}
}

func contexts() func(*ledger, *rand.Rand, time.Duration) {
	type held struct {
		n      *note
		ctx    context.Context
		cancel context.CancelFunc
	}
	var pending bag[held]
	parent := context.Context(context.Background())
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		d := delay(rng, longest)
		x := held{n: l.enter(d)}
		x.ctx, x.cancel = deadline.WithTimeout(parent, d)
		context.AfterFunc(x.ctx, func() {
			if errors.Is(x.ctx.Err(), context.DeadlineExceeded) {
				x.n.fire()
			}
		})
		if x, ok := pending.swap(rng, x); ok {
			x.n.stop(func() bool {
				x.cancel()
				return errors.Is(x.ctx.Err(), context.Canceled)
			})
		}
	}
}

func keys(s *timer.Scheduler) func(*ledger, *rand.Rand, time.Duration) {
	k := keyed.New(s, func(_ int, n *note) { n.fire() })
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		key := rng.IntN(300)
		if n, ok := k.Get(key); ok && rng.IntN(2) == 0 {
			d := delay(rng, longest)
			n.move(d, func() bool { return k.Move(key, d) })
			return
		}
		if n, ok := k.Get(key); ok {
			n.stop(func() bool { _, ok := k.Remove(key); return ok })
		}
		d := delay(rng, longest)
		if err := k.Set(key, l.enter(d), d); err != nil {
			l.complain("%v", err)
		}
	}
}

func monitor() (kind, *idle.Monitor[*note]) {
	m := idle.New(func(n *note, _ time.Time) { n.fire() })
	type held struct {
		n *note
		e *idle.Entry[*note]
		d time.Duration
	}
	var all bag[held]
	return kind{"idle", false, func(l *ledger, rng *rand.Rand, longest time.Duration) {
		if len(all.things) == bagSize && rng.IntN(10) > 0 {
			x := all.things[rng.IntN(bagSize)]
			x.n.move(x.d, x.e.Touch)
			return
		}
		d := delay(rng, longest) + 10*time.Millisecond
		n := l.enter(d)
		e, err := m.Watch(n, d)
		if err != nil {
			l.complain("%v", err)
			return
		}
		if x, ok := all.swap(rng, held{n, e, d}); ok {
			x.n.stop(x.e.Stop)
		}
	}}, m
}

// request is an operation of a purgatory.
type request struct {
	purgatory.Delayed[int]
	n     *note
	ready atomic.Bool
}

func (r *request) TryComplete() bool { return r.ready.Load() && r.ForceComplete() }
func (r *request) OnComplete()       {}
func (r *request) OnExpiration()     { r.n.fire() }

func requests(s *timer.Scheduler) (kind, *purgatory.Purgatory[int]) {
	p := purgatory.New[int](s)
	var all bag[*request]
	return kind{"purgatory", false, func(l *ledger, rng *rand.Rand, longest time.Duration) {
		d := delay(rng, longest)
		r := &request{n: l.enter(d)}
		if _, err := p.CompleteOrWatch(r, d, rng.IntN(1000), 1000+rng.IntN(1000)); err != nil {
			l.complain("%v", err)
			return
		}
		if r, ok := all.swap(rng, r); ok {
			r.n.stop(r.ForceComplete)
		}
		p.CheckAndComplete(rng.IntN(2000))
	}}, p
}
