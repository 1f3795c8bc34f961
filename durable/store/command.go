package store

import "fmt"

// A Command changes tasks for a client.
type Command struct {
	Op    Op
	Keep  Keep   // of Schedule
	Items []Item // from 1 to MaxBatch; none with Pause and Resume
}

// An Item is what a command is to do with one task.
type Item struct {
	ID   string
	When When // of Schedule, Reschedule and Requeue
	Task Task // of Schedule, with the same ID
	// Generation is of Reschedule and Requeue: [Task.Renew] gives it to what is Pending
	// then with nothing tried. Empty: that has the generation it had.
	Generation string
	// Entry is of Import, with the same ID.
	Entry *Entry
	// Limit is of SetLimit, whose ID is the handler's name.
	Limit *Limit
}

// An Op is what a command does.
type Op uint8

const (
	// Schedule makes a task Pending, due at When. The outcome is Created, Replaced if the task
	// was Pending or Dead, or Following if it is Running. It is Kept, and nothing changes, if
	// Keep says so or the task must not run so soon again: see [Keeping]. A paused task, which
	// is Pending or Following at [Farthest], stays paused if what is scheduled repeats.
	Schedule Op = iota + 1
	// Reschedule has a Pending task be due at When: Moved. One that is Running becomes
	// Following, with its task as it is, or with the Generation as its NextTask. Others
	// are Absent.
	//
	// A task that has been tried keeps its attempts, Due and generation, unless it is
	// paused; of another one Due is When.
	Reschedule
	// Cancel takes a Pending task out: Removed. One that is Running becomes Stopping,
	// and is Following no more. Others are Absent.
	Cancel
	// Requeue makes a Dead task Pending, due at When, with nothing tried: Moved.
	// Others are Absent. The dead letter of a repeating task becomes a task with the
	// id [SingleID] of its Due, or, if there is one already, of the first moment from now on
	// for which there is none, and without a schedule.
	Requeue
	// Purge takes a Dead task out: Removed. Others are Absent.
	Purge
	// Import takes an entry over from another store: Created. It keeps all but the
	// lease: what was Running there is Pending, at once with what was tried, or, if it
	// was Following, at Next as its NextTask with nothing tried. One that was Stopping
	// and not Following is refused: it is gone with its attempt. If there is a task with
	// the id, that is Kept.
	Import
	// SetLimit gives a handler a limit, for what is claimed from now on: Created, or Replaced
	// if it had one. Kept says that [MaxLimits] others have one. The zero Limit takes it away:
	// Removed, or Absent if there is none.
	SetLimit
	// Pause has claims get nothing, until Resume. Neither has items, nor outcomes.
	Pause
	Resume
)

// Keep says which of two tasks with one id stays.
type Keep uint8

const (
	// KeepNone replaces the task that is there.
	KeepNone Keep = iota
	// KeepAny leaves a task that is there as it is, in any state.
	KeepAny
	// KeepEarlier leaves a Pending or Following task as it is unless the new one is
	// due before it, and KeepLater unless it is due after it.
	KeepEarlier
	KeepLater
	// KeepSame leaves a task that is not Dead as it is if the new one is the same, except for
	// its generation and its time.
	KeepSame
)

// An Outcome says what a command did to a task.
type Outcome uint8

const (
	// Unknown is what happened to the tasks of a command that was not answered: it may
	// have been carried out or not. Stores do not return it.
	Unknown Outcome = iota
	// Absent: there was no such task, or none that the command is for, and nothing
	// was done.
	Absent
	// Created: the task is pending. There was none with its key.
	Created
	// Replaced: the task is pending, in place of one that was pending or dead.
	Replaced
	// Kept: the task that the key has stays as it is.
	Kept
	// Following: the key's task is running. What was scheduled becomes pending, at
	// its time, when the attempt under way has ended, however it ends.
	Following
	// Moved: the pending task has another time now.
	Moved
	// Removed: the task is gone and will not run.
	Removed
	// Stopping: the task is running and was asked to stop. Its context is
	// cancelled when the worker next prolongs its lease, and however the attempt
	// ends, none follows.
	Stopping
)

var outcomes = [...]string{"unknown", "absent", "created", "replaced", "kept", "following", "moved", "removed", "stopping"}

func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}
