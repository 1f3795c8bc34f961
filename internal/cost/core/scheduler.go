package main

import (
	"time"

	"github.com/tickless/tickless/internal/cost"
	"github.com/tickless/tickless/timer"
)

// ofScheduler has f called with a Scheduler of one shard with n timers.
func ofScheduler(f func(*timer.Scheduler)) func(int) func(int) {
	return func(n int) func(int) {
		s := newScheduler()
		start(s, n)
		return func(int) { f(s) }
	}
}

// ofShards has f called with a Scheduler of n shards with a thousand timers.
func ofShards(f func(*timer.Scheduler)) func(int) func(int) {
	return func(n int) func(int) {
		s := newScheduler(timer.WithShards(n))
		start(s, 1000)
		return func(int) { f(s) }
	}
}

// What looks at samples looks at all of few timers: beyond this there are many.
const many, more = 1 << 14, 1 << 17

var schedulerOps = []cost.Op{
	{Name: "Scheduler.Len", Growth: cost.Constant, Prepare: ofScheduler(func(s *timer.Scheduler) { s.Len() })},
	{Name: "Scheduler.Len, of n shards", Growth: cost.LinearAtMost, From: 4, To: 64, Prepare: ofShards(func(s *timer.Scheduler) { s.Len() })},
	{Name: "Scheduler.Stats", Growth: cost.Constant, Prepare: ofScheduler(func(s *timer.Scheduler) { s.Stats() })},
	{Name: "Scheduler.Stats, of n shards", Growth: cost.LinearAtMost, From: 4, To: 64, Prepare: ofShards(func(s *timer.Scheduler) { s.Stats() })},
	{Name: "Scheduler.Forecast", Growth: cost.Constant, Times: 1, From: many, To: more, Prepare: ofScheduler(func(s *timer.Scheduler) { s.Forecast(time.Hour) })},
	{Name: "Scheduler.Levels", Growth: cost.Constant, Times: 1, From: many, To: more, Prepare: ofScheduler(func(s *timer.Scheduler) { s.Levels() })},
	{Name: "Scheduler.Levels, of n slots", Growth: cost.LinearAtMost, Times: 1, From: 64, To: 4096, Prepare: func(n int) func(int) {
		s := newScheduler(timer.WithWheelSize(n))
		start(s, 256)
		return func(int) { s.Levels() }
	}},
	{Name: "Scheduler.PendingTimers", Growth: cost.Linear, Times: 1, Prepare: ofScheduler(func(s *timer.Scheduler) {
		for range s.PendingTimers() {
		}
	})},
	{Name: "Scheduler.SamplePending, of a thousand", Growth: cost.Constant, Times: 1, From: many, To: more, Prepare: ofScheduler(func(s *timer.Scheduler) { s.SamplePending(1000) })},
	{Name: "Scheduler.SamplePending, of n", Growth: cost.LinearAtMost, Times: 1, From: 1 << 8, To: 1 << 13, Prepare: func(n int) func(int) {
		s := newScheduler()
		start(s, 1<<16)
		return func(int) { s.SamplePending(n) }
	}},
	{Name: "Scheduler.Close, of timers that Start started", Growth: cost.Constant, Times: 1, Prepare: ofScheduler(func(s *timer.Scheduler) { s.Close() })},
	{Name: "Scheduler.Close, of Tickers", Growth: cost.Linear, Times: 1, Prepare: func(n int) func(int) {
		s := newScheduler()
		for range n {
			s.NewTicker(time.Hour)
		}
		return func(int) { s.Close() }
	}},
	{Name: "Scheduler.Leftover", Growth: cost.Linearithmic, Times: 1, Prepare: func(n int) func(int) {
		s := newScheduler()
		start(s, n)
		s.Close()
		return func(int) {
			for range s.Leftover() {
			}
		}
	}},
}
