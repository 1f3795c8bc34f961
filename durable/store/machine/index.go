package machine

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Task is all data that a shard has about a task.
type Task struct {
	store.Entry
	// Lease is the duration of a Running task's lease. The lease starts again if the
	// wall clock is set.
	Lease time.Duration
	// Parked says that a Pending task waits behind others of its group. The methods Due and
	// Overdue of an Index differ: Due offers no such task, and Overdue counts them.
	Parked bool
}

// An Index stores the tasks, the numbers and the senders of one shard. Each call of Change,
// Do or another function with an Index is one transaction or a part of one. The store must
// keep all changes of a transaction, or none.
//
// Within a transaction, the methods see earlier changes, and return the same *Task for an
// id.
type Index interface {
	// Numbers returns the shard's numbers. The machine changes them in place.
	Numbers() *Numbers
	// Find returns the task with an id, or nil.
	Find(id string) *Task
	// Add returns a new task without a State. The id must be new. The machine then sets
	// the State and calls Changed.
	Add(id string) *Task
	// Changed stores a changed task, or deletes it if it has no State.
	Changed(*Task)
	// Due returns the n oldest due tasks that match the claim and that the [Picker] takes,
	// without Parked ones and those that [store.Entry.Waits] says are paused. It offers due
	// tasks to the Picker, the oldest first: [Picker.Merge] does that. Tasks of a handler may
	// be left out once Has returns false for a due one. If there are fewer than n, next is
	// when another task is due, or Never. The task at next need not match the claim.
	Due(c *store.Claim, p *Picker, now store.Time, n int) (due []*Task, next store.Time)
	// Running returns the Running tasks whose lease ends at or before a time.
	Running(until store.Time) []*Task
	// End returns when the first lease ends, or Never.
	End() store.Time
	// Over returns up to n Past entries that have expired: At is now or earlier.
	Over(now store.Time, n int) []*Task
	// Expiry returns when the first Past entry expires, or Never. It is called after Over.
	Expiry() store.Time
	// Expired counts the Past entries that have expired.
	Expired(now store.Time) int64
	// Limits returns the limits and pauses by handler. The machine changes the map and its
	// elements in place. While Numbers.Limits is 0, only SetLimit and PauseHandler call Limits.
	Limits() map[string]*Limit
	// Overdue counts the due tasks by handler and schedule, without paused ones.
	Overdue(now store.Time) []Kind

	// Group returns the state of a group, or nil. PutGroup stores it, or deletes it if g is
	// nil. While Numbers.Groups is 0, the machine does not call Group.
	Group(k GroupKey) *Group
	PutGroup(k GroupKey, g *Group)
	// Groups returns the first n groups, by their Until, whose Until is not after a time.
	Groups(until store.Time, n int) []*Group
	// Members returns, in any order, the Pending tasks of some groups that are not Parked,
	// and the first n Parked ones of each group and schedule: n suspects and n others.
	Members(groups []GroupKey, n int) []*Task

	// Sender returns a sender's record, or nil.
	Sender(name string) *Sender
	// Remember stores a sender's record, or deletes it if s is nil.
	Remember(name string, s *Sender)
	// Gone returns up to n senders whose last command was before a time. It may miss
	// some.
	Gone(before store.Time, n int) []string
	// Workers returns the senders that are workers. The Index sets Lost of each as it knows.
	Workers(now store.Time) []*Sender
}

// Never is later than any time.
const Never = store.Time(math.MaxInt64)

// Numbers are the counters and settings of a shard. All processes that use the shard
// share them.
type Numbers struct {
	Pending, Running, Dead, Past int64 // the number of tasks in each State
	store.Counters
	Limits int64 // how many handlers have a limit or are paused
	Groups int64 `json:",omitempty"` // how many groups have a state
	Paused bool
	Fence  int64 // the latest token or Version

	// Told is the time by which every worker claims again, even without a wake-up. If a
	// task becomes Pending with an earlier time, the machine wakes the workers and lowers
	// Told to that time.
	Told store.Time
	// Wakes grows when the store must wake the waiting workers.
	Wakes int64

	// Moment is when the latest transaction took place.
	Moment
}

// A Moment is a point in time, by two clocks of a process that works on a shard.
type Moment struct {
	// Wall is the time of the wall clock.
	Wall store.Time
	// Steady is the time of a clock that is never set. Steady times can be compared
	// only if Boot is equal.
	Steady time.Duration
	Boot   string
}

// A Sender is the latest command of a client or worker, with its answer. Stores may
// encode it as JSON.
type Sender struct {
	Number     int64             // of the command
	Seen       store.Time        // when the command came
	Late       bool              `json:",omitempty"` // it was refused because of its deadline
	Outcomes   []store.Outcome   `json:",omitempty"`
	Receipts   []store.Receipt   `json:",omitempty"`
	Extensions []store.Extension `json:",omitempty"`
	// The tasks that the command claimed have tokens from After+1 to Last.
	After, Last int64 `json:",omitempty"`
	// Claim is what the worker can run. It is nil if the sender is not a worker or has
	// left.
	Claim *Claim `json:",omitempty"`
	// Keys are those of a set's tasks, if the record is of a set: see [setName].
	Keys []string `json:",omitempty"`
	// Process identifies the worker's process. Stores of one machine set it, so that they
	// know whether the worker lives.
	Process string `json:",omitempty"`
	Lost    bool   `json:"-"` // see store.Worker; only set by Index.Workers
}

// A Claim is what a worker's latest claim says of the worker: see [store.Worker].
type Claim struct {
	Handlers, Schedules []string
	Worker              int64         `json:",omitempty"`
	About               string        `json:",omitempty"`
	Lease               time.Duration `json:",omitempty"`
}

// Knows reports whether the worker has the handler and, if it is not empty, the
// schedule.
func (c *Claim) Knows(handler, schedule string) bool {
	return slices.Contains(c.Handlers, handler) && (schedule == "" || slices.Contains(c.Schedules, schedule))
}

// A Kind counts the due tasks with one handler and schedule.
type Kind struct {
	Handler, Schedule string
	Tasks             int64
	First             store.Time // when the oldest of the tasks was due
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
		nextTask := Copy(*e.NextTask)
		e.NextTask = &nextTask
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
