package timer

import (
	"time"

	"github.com/tickless/tickless/executor"
)

// Stats holds what a Scheduler has counted since it was made. While no method runs,
//
//	Started = Fired + Stopped + HandedBack + FellBack + Pending
//
// The callback of every timer that fired has run, is running, or waits to run.
type Stats struct {
	// Started counts the starts of timers: by Start and similar methods, by each tick of
	// a ticker, and by a Reset of a Timer that was not pending.
	Started uint64
	// Fired counts the timers that fired.
	Fired uint64
	// Stopped counts the timers that were stopped before they fired.
	Stopped uint64
	// HandedBack counts the timers that were pending at Close or Shutdown.
	HandedBack uint64
	// FellBack counts the timers that use package time, or an alarm of the given clock,
	// instead of a wheel. They were started after Close, or are tickers with a period
	// shorter than a tick (see [Scheduler.NewTicker]).
	FellBack uint64
	// Pending is the number of timers that have neither fired nor been stopped.
	Pending int

	// Rejected counts the timers that Start and similar methods refused. RejectedFull
	// counts only those with [ErrTooManyPending].
	Rejected, RejectedFull uint64
	// Refused counts the callbacks that the executor refused. Each ran on a new
	// goroutine.
	Refused uint64
	// Queued is the number of callbacks that wait for the poller to submit them.
	Queued int

	// Wakeups counts the wake-ups of the poller. EmptyWakeups counts those in which no
	// timer fired or moved down a level.
	Wakeups, EmptyWakeups uint64
	// Cascaded counts how often a timer has moved to a lower level of its wheel.
	Cascaded uint64
	// Lateness tells how long after its due time each timer fired. The due time includes
	// the slack.
	Lateness Histogram

	// Panicked counts the callbacks that panicked. With an executor of WithExecutor they
	// are counted only if there is a panic handler.
	Panicked uint64
	// Executor has the executor's counts, which include callbacks of its other users. It
	// is zero if the executor has no method Stats() executor.Stats.
	Executor executor.Stats
}

func (s *Stats) addCounts(n *counts) {
	s.Started += n.started
	s.Fired += n.fired
	s.Stopped += n.stopped
	s.HandedBack += n.handedBack
	s.FellBack += n.fellBack
	s.Rejected += n.rejected
	s.RejectedFull += n.rejectedFull
	s.Cascaded += n.cascaded
	if n.lateness != nil {
		s.Lateness.merge(n.lateness)
	}
}

// counts is a shard's part of Stats. The shard's lock guards it.
type counts struct {
	started, fired, stopped, handedBack, fellBack, rejected, rejectedFull, cascaded uint64
	// lateness is nil if no timer has fired.
	lateness *Histogram
}

// countFired counts a timer as fired, and records how long after its due time that was.
func (n *counts) countFired(lateness time.Duration) {
	n.fired++
	if n.lateness == nil {
		n.lateness = new(Histogram)
	}
	n.lateness.Record(lateness)
}
