package machine

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Task is the data that a shard has about a task.
type Task struct {
	store.Entry
	// Lease is how long the lease lasts if the task is Running: see Numbers.Wall.
	Lease time.Duration
	// Alone says that the worker of a Running task runs nothing else.
	Alone bool
}

// An Index stores the tasks of one shard, its numbers and its senders. It sees its own
// changes. During a transaction it always returns the same *Task for an id.
//
// A store makes each call of this package one transaction or a part of one: it keeps
// all changes made to the Index, or none.
type Index interface {
	// Numbers returns the shard's numbers. The machine changes them in place.
	Numbers() *Numbers
	// Find returns the task with an id, or nil.
	Find(id string) *Task
	// Add returns a new task for an id that does not exist, without a State. The
	// machine then sets its State and calls Changed.
	Add(id string) *Task
	// Changed says that a task has changed. A task without a State is deleted.
	Changed(*Task)
	// Due returns the n oldest due Pending tasks that match the claim, within the room
	// of a Picker. If there are fewer than n, it returns all of them, and as next the
	// time of the first task that is not due yet, or Never. next may be the time of a
	// task that does not match the claim.
	Due(c *store.Claim, now store.Time, n int) (due []*Task, next store.Time)
	// Running returns the Running tasks whose lease ends at or before a time.
	Running(until store.Time) []*Task
	// End returns when the first lease ends, or Never.
	End() store.Time
	// Over returns up to n Past entries whose At has passed, the first ones first.
	Over(now store.Time, n int) []*Task
	// Limits returns the limits by handler. The machine changes them and the map in
	// place. The map has Numbers.Limits elements. The machine calls Limits only if that
	// is not 0, and for SetLimit.
	Limits() map[string]*Limit
	// Overdue counts the due tasks by kind.
	Overdue(now store.Time) []Kind

	// Sender returns a sender's record, or nil.
	Sender(name string) *Sender
	// Remember stores a sender's record, or deletes it if s is nil.
	Remember(name string, s *Sender)
	// Gone returns up to n senders whose last command was before a time.
	Gone(before store.Time, n int) []string
	// Workers returns the latest claims of all senders that are workers.
	Workers() []*Claim
}

// Never is later than any time.
const Never = store.Time(math.MaxInt64)

// Numbers are the counters and settings of a shard. All processes that use the shard
// share them.
type Numbers struct {
	Pending, Running, Dead, Past int64
	store.Counters
	Limits int64 // handlers that have a limit
	Paused bool
	Fence  int64 // the latest token

	// Told is the time by which every worker claims without a wake-up, as the answers to
	// their claims have said. A command that makes a task due earlier lowers Told and
	// increments Wakes. The store then wakes the waiting workers. Apart from that,
	// Resume, a claim that leaves tasks for others, and a limit that has room again wake
	// them.
	Told  store.Time
	Wakes int64

	// The Moment of the latest transaction.
	Moment
}

// A Moment is the current time in the process that works on a shard.
type Moment struct {
	// Wall is the time of the wall clock.
	Wall store.Time
	// Steady is the time of a clock that is never set. Boot identifies its start.
	Steady time.Duration
	Boot   string
}

// A Sender is the latest command of a sender and its answer. Stores may encode it as
// JSON.
type Sender struct {
	Number     int64 // the command's
	Seen       store.Time
	Outcomes   []store.Outcome   `json:",omitempty"`
	Receipts   []store.Receipt   `json:",omitempty"`
	Extensions []store.Extension `json:",omitempty"`
	// The tasks that the command claimed have the tokens above After, up to Last.
	After, Last int64 `json:",omitempty"`
	// Claim is what the worker can run. It is nil if the sender is not a worker or has
	// left.
	Claim *Claim `json:",omitempty"`
}

// A Claim lists the handlers and schedules of a worker.
type Claim struct{ Handlers, Schedules []string }

// Suspect reports whether the task may have ended a worker.
func (t *Task) Suspect() bool { return t.Crashes > 0 }

// Knows reports whether the worker has the handler and, if it is not empty, the
// schedule.
func (c *Claim) Knows(handler, schedule string) bool {
	return slices.Contains(c.Handlers, handler) && (schedule == "" || slices.Contains(c.Schedules, schedule))
}

// A Kind counts the due tasks with one handler and schedule.
type Kind struct {
	Handler, Schedule string
	Tasks             int64
	First             store.Time // when the oldest was due
}

// Copy returns a copy of a task, including its record.
func Copy(t store.Task) store.Task {
	t.Record = bytes.Clone(t.Record)
	return t
}

// CopyEntry returns a copy of e that shares no memory with e, except for texts of
// failures, which never change.
func CopyEntry(e store.Entry) store.Entry {
	e.Task, e.Failures = Copy(e.Task), slices.Clone(e.Failures)
	if e.NextTask != nil {
		next := Copy(*e.NextTask)
		e.NextTask = &next
	}
	return e
}

// CopyItems returns a copy of items that shares no memory with them.
func CopyItems(items []store.Item) []store.Item {
	items = slices.Clone(items)
	for i := range items {
		x := &items[i]
		x.Task = Copy(x.Task)
		if x.Entry != nil {
			e := CopyEntry(*x.Entry)
			x.Entry = &e
		}
	}
	return items
}
