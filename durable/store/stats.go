package store

import "time"

// Stats are the numbers of tasks and the counters of a shard.
type Stats struct {
	Pending int64 // tasks that wait, those included that are overdue
	Overdue int64 // tasks that are due and not claimed
	Running int64
	Dead    int64
	Past    int64 // runs that are kept, and one more entry for each key that has any
	// Unknown is the number of due tasks whose handler or schedule no running worker has
	// named in its latest claim.
	Unknown int64
	// Astray is the number of tasks that no claim finds because an index was damaged.
	// Workers on Redis correct them within a minute; Repair does too.
	Astray int64
	// Late is how long the most overdue task has been due, or zero.
	Late   time.Duration
	Paused bool
	// Limits are the limits by handler, or nil if there are none.
	Limits map[string]Limit

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
	s.Limits = t.Limits // which all shards have
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
	Claimed  int64 // attempts begun
	Done     int64 // runs that ended well
	Retried  int64 // attempts that failed and were followed by another
	Died     int64 // runs that became dead letters
	Crashed  int64 // leases that ran out
	Released int64 // attempts handed back
	Refused  int64 // reports of workers whose lease another had by then, or none
	// Cancelled counts tasks that Cancel removed or found running. A running task is
	// counted at once, although it only ends with its attempt, and only once even if it
	// is cancelled again.
	Cancelled int64
}

// A Health is the result of Check.
type Health struct {
	// Store describes the store, for people.
	Store string
	// Warnings are conditions that may lose or delay tasks.
	Warnings []string
}

// A Repair counts what Store.Repair has checked and corrected.
type Repair struct {
	Looked   int64 // entries looked at
	Requeued int64 // tasks that were in no place: they are Pending now, or dead letters again
	Doubled  int64 // tasks that were in two places: they are in one now
	Orphaned int64 // entries without a task: they are gone
}
