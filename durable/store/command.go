package store

import "fmt"

// A Command changes tasks for a client.
type Command struct {
	Op    Op
	Keep  Keep   // of Schedule
	Items []Item // from 1 to MaxBatch; none with Pause and Resume
}

// An Item is one task of a command.
type Item struct {
	ID   string
	When When // of Schedule, Reschedule and Requeue
	Task Task // of Schedule, with the same ID
	// Generation is for Reschedule and Requeue. [Task.Renew] gives it to a task that
	// the command makes Pending without attempts. If it is empty, the task keeps its
	// generation.
	Generation string
	// Entry is for Import, with the same ID.
	Entry *Entry
	// Limit is for SetLimit, whose ID is the handler's name.
	Limit *Limit
}

// An Op is what a command does.
type Op uint8

const (
	// Schedule makes a task Pending, due at When. The outcome is Created, Replaced if
	// the id's task was Pending or Dead, or Following if it is Running. The outcome is
	// Kept, and nothing changes, if Keep says so or if the key is not unique yet: see
	// [Keeping]. A paused task, which is Pending or Following at [Farthest], stays
	// paused if the new task repeats.
	Schedule Op = iota + 1
	// Reschedule moves a Pending task to When: Moved. A Running task becomes Following,
	// with its present Task or, if there is a Generation, with that as its NextTask. In
	// other states the outcome is Absent.
	//
	// A task with attempts keeps its Attempts, Due and generation, unless it is paused.
	// Without attempts its Due becomes When.
	Reschedule
	// Cancel removes a Pending task: Removed. A Running task becomes Stopping and is no
	// longer Following. In other states the outcome is Absent.
	Cancel
	// Requeue makes a Dead task Pending, due at When, without attempts: Moved. In other
	// states the outcome is Absent. The dead letter of a repeating task becomes a task
	// without a schedule, whose id is [SingleID] of its Due. If that id exists, it is
	// [SingleID] of the first unused time from now on.
	Requeue
	// Purge removes a Dead task: Removed. In other states the outcome is Absent.
	Purge
	// Import adds an entry of another store: Created. The entry keeps everything except
	// its lease. A Running entry becomes Pending and due at once, with its attempts; a
	// Following one becomes Pending at Next, as its NextTask, without attempts. An
	// entry that is Stopping and not Following is invalid, because it ends with its
	// attempt. If the id exists, the outcome is Kept.
	Import
	// SetLimit sets a handler's limit for later claims: Created, or Replaced if the
	// handler had one. The outcome is Kept if [MaxLimits] other handlers have one. The
	// zero Limit removes the handler's limit: Removed, or Absent if there is none.
	SetLimit
	// Pause stops claims from getting tasks until Resume. Pause and Resume have no
	// items and no outcomes.
	Pause
	Resume
)

// Keep says when Schedule keeps the task that an id already has.
type Keep uint8

const (
	// KeepNone always replaces the existing task.
	KeepNone Keep = iota
	// KeepAny keeps an existing task in any state.
	KeepAny
	// KeepEarlier keeps a Pending or Following task unless the new one is due before
	// it. KeepLater keeps it unless the new one is due after it.
	KeepEarlier
	KeepLater
	// KeepSame keeps a task that is not Dead if the new one differs only in its
	// generation and its time.
	KeepSame
)

// An Outcome says what a command did with a task.
type Outcome uint8

const (
	// Unknown means that the command was not answered: it may or may not have had its
	// effect. Stores do not return it.
	Unknown Outcome = iota
	// Absent means that there is no such task in a state that the command applies to.
	// There was no effect.
	Absent
	// Created means that the new task is pending. The key had no task.
	Created
	// Replaced means that the new task is pending and replaces a pending or dead one.
	Replaced
	// Kept means that the key's existing task is unchanged.
	Kept
	// Following means that the key's task is running. The new task becomes pending, at
	// its time, when the current attempt ends, whatever its result.
	Following
	// Moved means that the pending task has a new time.
	Moved
	// Removed means that the task is deleted and will not run.
	Removed
	// Stopping means that the task is running and was asked to stop. Its context is
	// cancelled when the worker next extends its lease. The task ends with the current
	// attempt, whatever its result.
	Stopping
)

var outcomes = [...]string{"unknown", "absent", "created", "replaced", "kept", "following", "moved", "removed", "stopping"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}
