package store

import "time"

// Stats are the numbers of a shard's tasks, and its counters.
type Stats struct {
	Pending int64 // waiting tasks, including overdue ones
	Overdue int64 // due tasks that are not claimed, without tasks that are paused themselves
	Running int64
	Dead    int64
	Past    int64 // finished runs that are kept, and one head entry for each key with such runs
	// Unknown is the number of due tasks that no worker can run: no running worker's
	// latest claim names their handler and schedule. A worker that was killed counts as
	// running for up to a minute, or twice its lease if that is longer.
	Unknown int64
	// Astray is the number of tasks that no claim can find, because an index is
	// damaged. Store.Repair corrects them. On Redis, workers do so within a minute.
	Astray int64
	// Late is how long the most overdue task has been due, or zero.
	Late   time.Duration
	Paused bool
	// Limits are the limits by handler, or nil if there are none.
	Limits map[string]Limit
	// PausedHandlers are the handlers that are paused, or nil if there are none.
	PausedHandlers map[string]HandlerPause

	Counters
}

// Add adds the numbers of another shard. Late becomes the larger of the two.
func (s *Stats) Add(t Stats) {
	s.Pending += t.Pending
	s.Overdue += t.Overdue
	s.Running += t.Running
	s.Dead += t.Dead
	s.Past += t.Past
	s.Unknown += t.Unknown
	s.Astray += t.Astray
	s.Late = max(s.Late, t.Late)
	s.Paused = s.Paused || t.Paused
	s.Limits = t.Limits // all shards have the same
	for h, p := range t.PausedHandlers {
		if s.PausedHandlers == nil {
			s.PausedHandlers = make(map[string]HandlerPause)
		}
		s.PausedHandlers[h] = p
	}
	s.Claimed += t.Claimed
	s.Done += t.Done
	s.Retried += t.Retried
	s.Died += t.Died
	s.Crashed += t.Crashed
	s.Released += t.Released
	s.Refused += t.Refused
	s.Cancelled += t.Cancelled
}

// Counters count events since the shard was created.
type Counters struct {
	Claimed  int64 // attempts started
	Done     int64 // runs that succeeded
	Retried  int64 // failed attempts that are retried
	Died     int64 // runs that became dead letters
	Crashed  int64 // leases that expired
	Released int64 // attempts whose tasks a worker handed back to the store
	Refused  int64 // reports whose lease was no longer valid
	// Cancelled counts tasks that Cancel removed, or asked to stop while they ran. A
	// running task counts once, even if it is cancelled again.
	Cancelled int64
}

// A Health is the result of Check.
type Health struct {
	// Store describes the store to operators.
	Store string
	// Warnings are conditions that may lose or delay tasks.
	Warnings []string
}

// A Repair counts what Store.Repair has checked and corrected.
type Repair struct {
	Looked   int64 // entries checked
	Requeued int64 // tasks in no index, which are now Pending or dead letters again
	Doubled  int64 // tasks in two indexes, which are now in one
	Orphaned int64 // index entries without a task, which are now removed
}
