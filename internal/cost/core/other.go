package main

import (
	"time"

	"github.com/tickless/tickless/delayqueue"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timertest"
)

// queue returns one with n elements that come one after the other, the last one first.
func queue(n int) (*delayqueue.Queue[int], *timertest.Clock, []delayqueue.Ticket) {
	clk := newClock()
	q := delayqueue.New[int](delayqueue.WithClock(clk))
	tickets := make([]delayqueue.Ticket, n)
	for i := range tickets {
		tickets[i], _ = q.OfferAfter(i, time.Hour+time.Duration(n-i))
	}
	return q, clk, tickets
}

var queueOps = []cost.Op{
	{Name: "delayqueue: Offer", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		q, _, _ := queue(n)
		return func(i int) { q.OfferAfter(i, time.Hour-time.Duration(i)) }
	}},
	{Name: "delayqueue: Poll", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		q, clk, _ := queue(n)
		clk.Advance(2 * time.Hour)
		return func(int) { q.Poll() }
	}},
	{Name: "delayqueue: Peek, Head and Len", Growth: cost.Constant, Prepare: func(n int) func(int) {
		q, _, _ := queue(n)
		return func(int) {
			q.Peek()
			q.Head()
			q.Len()
		}
	}},
	{Name: "delayqueue: Remove, of one", Growth: cost.Constant, Times: 1, Prepare: func(n int) func(int) {
		q, _, tickets := queue(n)
		return func(i int) { q.Remove(some(tickets, 128)) }
	}},
	{Name: "delayqueue: Remove, of all", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		q, _, tickets := queue(n)
		return func(int) {
			for _, t := range tickets {
				q.Remove(t)
			}
		}
	}},
	{Name: "delayqueue: Drain", Growth: cost.Linearithmic, Times: 1, Prepare: func(n int) func(int) {
		q, _, _ := queue(n)
		return func(int) { q.Drain() }
	}},
}

// monitor returns one that watches n things.
func monitor(n int) (*idle.Monitor[int], []*idle.Entry[int]) {
	m := idle.New(func(int, time.Time) {}, idle.WithClock(newClock()))
	entries := make([]*idle.Entry[int], n)
	for i := range entries {
		entries[i] = must(m.Watch(i, delay(i, n)))
	}
	return m, entries
}

// waits is an operation that nothing completes.
type waits struct{ purgatory.Delayed[int] }

func (*waits) TryComplete() bool { return false }
func (*waits) OnComplete()       {}
func (*waits) OnExpiration()     {}

// waiting returns a purgatory with n operations that wait for key 0.
func waiting(n int, opts ...purgatory.Option) (*purgatory.Purgatory[int], []*waits) {
	p := purgatory.New[int](newScheduler(), opts...)
	all := make([]*waits, n)
	for i := range all {
		all[i] = new(waits)
		must(p.TryCompleteElseWatch(all[i], delay(i, n), 0))
	}
	return p, all
}

var otherOps = []cost.Op{
	{Name: "idle: Watch", Growth: cost.Constant, Prepare: func(n int) func(int) {
		m, _ := monitor(n)
		return func(i int) { must(m.Watch(i, delay(i, 256))) }
	}},
	{Name: "idle: Touch", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, entries := monitor(n)
		return func(i int) { some(entries, i).Touch() }
	}},
	{Name: "idle: SetTimeout", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, entries := monitor(n)
		return func(i int) { some(entries, i).SetTimeout(time.Minute) }
	}},
	{Name: "idle: Stop", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, entries := monitor(n)
		return func(i int) { some(entries, i).Stop() }
	}},
	{Name: "idle: Stats and Len", Growth: cost.Constant, Prepare: func(n int) func(int) {
		m, _ := monitor(n)
		return func(int) {
			m.Stats()
			m.Len()
		}
	}},
	{Name: "purgatory: TryCompleteElseWatch, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		p, _ := waiting(n)
		return func(i int) { must(p.TryCompleteElseWatch(new(waits), delay(i, 256), 0)) }
	}},
	{Name: "purgatory: TryCompleteElseWatch and ForceComplete, of n keys", Growth: cost.Linear, Times: 1, From: 16, To: 4096, Prepare: func(n int) func(int) {
		p, _ := waiting(0)
		keys := make([]int, n)
		for i := range keys {
			keys[i] = i
		}
		op := new(waits)
		return func(int) {
			must(p.TryCompleteElseWatch(op, time.Hour, keys...))
			op.ForceComplete()
		}
	}},
	{Name: "purgatory: ForceComplete, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		_, all := waiting(n)
		return func(i int) { some(all, i).ForceComplete() }
	}},
	{Name: "purgatory: CheckAndComplete, of n", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		p, _ := waiting(n)
		return func(int) { p.CheckAndComplete(0) }
	}},
	{Name: "purgatory: CancelForKey, of n", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		p, _ := waiting(n)
		return func(int) { p.CancelForKey(0) }
	}},
	{Name: "purgatory: Stats, Len and Watched, beside n", Growth: cost.Constant, Prepare: func(n int) func(int) {
		p, _ := waiting(n)
		return func(int) {
			p.Stats()
			p.Len()
			p.Watched()
		}
	}},
	{Name: "purgatory: Stats, of n shards", Growth: cost.LinearAtMost, From: 4, To: 1024, Prepare: func(n int) func(int) {
		p, _ := waiting(16, purgatory.WithShards(n))
		return func(int) { p.Stats() }
	}},
	{Name: "executor: Submit, behind n", Growth: cost.Constant, Times: 4096, Prepare: func(n int) func(int) {
		p := blocked(n)
		return func(int) { check(p.Submit(nothing)) }
	}},
	{Name: "executor: SubmitBatch of n", Growth: cost.LinearAtMost, Times: 1, Prepare: func(n int) func(int) {
		p := blocked(0)
		fs := make([]func(), n)
		for i := range fs {
			fs[i] = nothing
		}
		return func(int) { must(p.SubmitBatch(fs)) }
	}},
	{Name: "timertest: Advance, which rings one of n", Growth: cost.Logarithmic, Prepare: func(n int) func(int) {
		clk := newClock()
		for i := range n {
			clk.NewAlarm(nothing).Reset(time.Duration(1+i) * time.Second)
		}
		return func(int) { clk.Advance(time.Second) }
	}},
}

// blocked returns a pool whose one worker is blocked, with n callbacks that wait for it.
func blocked(n int) *executor.Pool {
	p := executor.NewPool(executor.WithWorkers(1), executor.WithMaxWorkers(1))
	check(p.Submit(func() { select {} }))
	for range n {
		check(p.Submit(nothing))
	}
	return p
}
