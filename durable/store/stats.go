package store

import "time"

// Stats are the numbers of a shard.
type Stats struct {
	Pending int64 // tasks that wait, those included that are overdue
	Overdue int64 // tasks that are due and not claimed
	Running int64
	Dead    int64
	Past    int64 // runs that are kept, and the heads of them
	// Unknown are tasks that are due and that nobody can run: no worker that is there
	// has named their handler, or their schedule, in its latest claim.
	Unknown int64
	// Astray are tasks that no claim finds, since what they wait in was damaged: Repair
	// puts them right.
	Astray int64
	// Late is how long the task has been due that waits longest; zero if there is none.
	Late   time.Duration
	Paused bool
	// Limits are those of handlers, by their names; nil if there are none.
	Limits map[string]Limit

	Counters
}

// Counters count what has happened since the shard was made.
type Counters struct {
	Claimed  int64 // attempts begun
	Done     int64 // runs that ended well
	Retried  int64 // attempts that failed and were followed by another
	Died     int64 // runs that became dead letters
	Crashed  int64 // leases that ran out
	Released int64 // attempts handed back
	Refused  int64 // reports of workers whose lease another had by then, or none
	// Cancelled counts tasks that Cancel removed, and those that it found running, at
	// once: these are gone when their attempt ends, which is counted too. A task that is
	// cancelled again while it runs is counted once.
	Cancelled int64
}

// Add adds those of another shard.
func (c *Counters) Add(d Counters) {
	c.Claimed += d.Claimed
	c.Done += d.Done
	c.Retried += d.Retried
	c.Died += d.Died
	c.Crashed += d.Crashed
	c.Released += d.Released
	c.Refused += d.Refused
	c.Cancelled += d.Cancelled
}

// A Health is what Check has found.
type Health struct {
	// Store is what it is and where, for people to read.
	Store string
	// Warnings are what may lose tasks, or make them late.
	Warnings []string
}

// A Repair is what Store.Repair has looked at and put right.
type Repair struct {
	Looked   int64 // entries looked at
	Requeued int64 // tasks that were in no place: they are Pending now, or dead letters again
	Doubled  int64 // tasks that were in two places: they are in one now
	Orphaned int64 // entries without a task: they are gone
}
