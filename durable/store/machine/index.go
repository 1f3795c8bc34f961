package machine

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Task is what a shard has of a task.
type Task struct {
	store.Entry
	// Lease is how long its lease lasts, if it is Running: see Numbers.Wall.
	Lease time.Duration
	// Alone says that its worker runs nothing else, if it is Running.
	Alone bool
}

// An Index keeps the tasks of one shard, its numbers and its senders. It sees its own
// changes. The Task that it returns for an id is the same one throughout a transaction.
//
// A store makes each call of this package one transaction, or a part of one: all that
// the Index was told is kept, or nothing of it.
type Index interface {
	// Numbers returns the shard's numbers. The Index keeps what is changed in them.
	Numbers() *Numbers
	// Find returns the task with an id, or nil.
	Find(id string) *Task
	// Add returns a new task, with an id that no task has, in no State. The machine
	// gives it one, and calls Changed.
	Add(id string) *Task
	// Changed tells the Index that a task has changed. Without a State it is gone.
	Changed(*Task)
	// Due returns the n oldest tasks that are Pending, due, and meet the claim, as a Picker
	// has room for them. If there are fewer it returns all of them, and when the next one is
	// due that is not due yet; Never if there is none. It may count tasks that do not meet
	// the claim as next.
	Due(c *store.Claim, now store.Time, n int) (due []*Task, next store.Time)
	// Running returns the Running tasks whose lease ends until a time.
	Running(until store.Time) []*Task
	// End returns when the first lease ends; Never if there is none.
	End() store.Time
	// Over returns the n first entries, or fewer, that are Past and whose At has come.
	Over(now store.Time, n int) []*Task
	// Limits returns the limits by handler. The Index keeps what is changed in them and in
	// the map, which holds as many as Numbers.Limits says. It is called if that is not 0, or
	// for SetLimit.
	Limits() map[string]*Limit
	// Overdue returns the tasks that are due by kind.
	Overdue(now store.Time) []Kind

	// Sender returns what is known of a sender, or nil.
	Sender(name string) *Sender
	// Remember keeps the latest command of a sender, and forgets the sender for nil.
	Remember(name string, s *Sender)
	// Gone returns some of the senders, at most n, that were seen last before a time.
	Gone(before store.Time, n int) []string
	// Workers returns the latest claims of the senders that have one.
	Workers() []*Claim
}

// Never is later than any time.
const Never = store.Time(math.MaxInt64)

// Numbers are those of a shard. All processes that share the shard share them.
type Numbers struct {
	Pending, Running, Dead, Past int64
	store.Counters
	Limits int64 // handlers that have a limit
	Paused bool
	Fence  int64 // the latest token

	// Told is when every worker will have looked by itself, as the answers to their
	// claims have said. A task that is due before it lowers it and adds one to Wakes, which
	// is when a store wakes all who wait; nothing else wakes them but Resume, a claim that
	// leaves tasks for others, and a limit that has room again.
	Told  store.Time
	Wakes int64

	// The Moment of the latest transaction.
	Moment
}

// A Moment is the time as the process sees it that works on a shard.
type Moment struct {
	// Wall is what the wall clock shows.
	Wall store.Time
	// Steady is a clock that nobody sets, from a beginning that Boot names.
	Steady time.Duration
	Boot   string
}

// A Sender is the latest command of a sender, and its answer. Stores may keep it as JSON.
type Sender struct {
	Number     int64 // the command's
	Seen       store.Time
	Outcomes   []store.Outcome   `json:",omitempty"`
	Receipts   []store.Receipt   `json:",omitempty"`
	Extensions []store.Extension `json:",omitempty"`
	// The tasks that it claimed have the tokens above After, up to Last.
	After, Last int64 `json:",omitempty"`
	// Claim is what a worker can run; nil if the sender is none, or has left.
	Claim *Claim `json:",omitempty"`
}

// A Claim is what a worker can run.
type Claim struct{ Handlers, Schedules []string }

// Suspect reports whether the task may have ended a worker.
func (t *Task) Suspect() bool { return t.Crashes > 0 }

// Knows reports whether the worker can run tasks of a kind.
func (c *Claim) Knows(handler, schedule string) bool {
	return slices.Contains(c.Handlers, handler) && (schedule == "" || slices.Contains(c.Schedules, schedule))
}

// A Kind counts the tasks that are due and need the same of a worker.
type Kind struct {
	Handler, Schedule string
	Tasks             int64
	First             store.Time // when the oldest was due
}

// Copy returns a task with a record of its own.
func Copy(t store.Task) store.Task {
	t.Record = bytes.Clone(t.Record)
	return t
}

// CopyEntry returns an entry that shares nothing with e. Failures are never changed, only replaced.
func CopyEntry(e store.Entry) store.Entry {
	e.Task, e.Failures = Copy(e.Task), slices.Clone(e.Failures)
	if e.NextTask != nil {
		next := Copy(*e.NextTask)
		e.NextTask = &next
	}
	return e
}

// CopyItems returns items that share nothing with those of a caller.
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
