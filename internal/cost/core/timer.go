package main

import (
	"sync"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timer"
)

// timers returns n Timers of an hour or two.
func timers(n int) []*timer.Timer {
	s := newScheduler()
	ts := make([]*timer.Timer, n)
	for i := range ts {
		ts[i] = s.AfterFunc(delay(i, n), nothing)
	}
	return ts
}

// group returns one with n timers.
func group(n int) *timer.Group {
	g := timer.NewGroup(newScheduler())
	for i := range n {
		must(g.Start(delay(i, n), nothing))
	}
	return g
}

var timerOps = []cost.Op{
	{Name: "Scheduler.Start", Growth: cost.Constant, Prepare: func(n int) func(int) {
		s := newScheduler()
		start(s, n)
		return func(i int) { must(s.Start(delay(i, 256), nothing)) }
	}},
	{Name: "Handle.Stop", Growth: cost.Constant, Prepare: func(n int) func(int) {
		hs := start(newScheduler(), n)
		return func(i int) { some(hs, i).Stop() }
	}},
	{Name: "Handle.Reset, later", Growth: cost.Constant, Prepare: func(n int) func(int) {
		hs := start(newScheduler(), n)
		return func(i int) { some(hs, i).Reset(3 * time.Hour) }
	}},
	{Name: "Handle.Reset, earlier", Growth: cost.Constant, Prepare: func(n int) func(int) {
		hs := start(newScheduler(), n)
		return func(i int) { some(hs, i).Reset(time.Minute) }
	}},
	{Name: "Handle.Deadline", Growth: cost.Constant, Prepare: func(n int) func(int) {
		hs := start(newScheduler(), n)
		return func(i int) { some(hs, i).Deadline() }
	}},
	{Name: "Timer.Reset", Growth: cost.Constant, Prepare: func(n int) func(int) {
		ts := timers(n)
		return func(i int) { some(ts, i).Reset(3 * time.Hour) }
	}},
	{Name: "Timer.Reset and Stop", Growth: cost.Constant, Prepare: func(n int) func(int) {
		ts := timers(n)
		return func(i int) {
			some(ts, i).Reset(3 * time.Hour)
			some(ts, i).Stop()
		}
	}},
	{Name: "Timer.Reset and Stop, of all, so that dead places are swept", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		ts := timers(n)
		return func(int) {
			for _, t := range ts {
				t.Reset(3 * time.Hour)
				t.Stop()
			}
		}
	}},
	{Name: "Timer.Deadline", Growth: cost.Constant, Prepare: func(n int) func(int) {
		ts := timers(n)
		return func(i int) { some(ts, i).Deadline() }
	}},
	{Name: "firing 256 timers", Growth: cost.Constant, Times: 1, Prepare: func(n int) func(int) {
		clk := newClock()
		s := timer.New(timer.WithClock(clk), timer.WithShards(1), timer.WithExecutor(executor.NewInline()))
		start(s, n)
		var fired sync.WaitGroup
		for i := range 256 {
			fired.Add(1)
			must(s.Start(time.Duration(i)*time.Millisecond, fired.Done))
		}
		return func(int) {
			clk.Advance(time.Second)
			fired.Wait()
		}
	}},
	{Name: "Group.Start, n times", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		g := timer.NewGroup(newScheduler())
		return func(int) {
			for i := range n {
				must(g.Start(delay(i, n), nothing))
			}
		}
	}},
	{Name: "Group.Len", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		g := group(n)
		return func(int) { g.Len() }
	}},
	{Name: "Group.Stop", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		g := group(n)
		return func(int) { g.Stop() }
	}},
}

// keyed returns one with n keys, all multiples of 256, and more than there are shards.
func keyed(n int, opts ...timer.Option) *timer.Keyed[int, int] {
	k := timer.NewKeyed(newScheduler(opts...), func(int, int) {})
	for i := range n {
		check(k.Set(i*256, i, delay(i, n)))
	}
	return k
}

func check(err error) { must(0, err) }

var keyedOps = []cost.Op{
	{Name: "Keyed.Set, a new key", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { check(k.Set(-1-i, i, delay(i, 256))) }
	}},
	{Name: "Keyed.Set, over a key", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { check(k.Set(i*n, i, time.Minute)) }
	}},
	{Name: "Keyed.Move", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { k.Move(i*n, time.Minute) }
	}},
	{Name: "Keyed.Remove", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { k.Remove(i * n) }
	}},
	{Name: "Keyed.Get", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { k.Get(i * n) }
	}},
	{Name: "Keyed.Deadline", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(i int) { k.Deadline(i * n) }
	}},
	{Name: "Keyed.Len", Growth: cost.Constant, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(int) { k.Len() }
	}},
	{Name: "Keyed.Len, of n shards", Growth: cost.LinearAtMost, Times: 1, From: 4, To: 64, Prepare: func(n int) func(int) {
		k := keyed(256, timer.WithShards(n))
		return func(int) { k.Len() }
	}},
	{Name: "Keyed.All", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(int) {
			for range k.All() {
			}
		}
	}},
	{Name: "Keyed.Drain", Growth: cost.Linearithmic, Times: 1, Prepare: func(n int) func(int) {
		k := keyed(n)
		return func(int) { k.Drain(func(int, int) {}) }
	}},
}
