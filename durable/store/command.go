package store

import "fmt"

// A Command changes tasks for a client.
type Command struct {
	Op    Op
	Keep  Keep   // for Schedule
	Items []Item // from 1 to MaxBatch, none for Pause and Resume, up to MaxSet more for Sync
	// After, if not nil, is for a Schedule of one item. A store that has the task at hand sets it
	// to what Get would return just after the command. It stays as it is if the store would have
	// to read the task for that, or if the command is repeated. After an error the store may
	// still write it.
	After *Entry
}

// An Item is one task of a command.
type Item struct {
	ID   string
	When When // for Schedule, Reschedule and Requeue
	Task Task // for Schedule, with the same ID
	// Next is for Schedule: When is the next time of the task's own [Repetition], from
	// now on. If When is after its End, the task is over.
	Next bool
	// Anew is for Sync, with Next: a run that is neither due nor begun moves to When, even if
	// the task is unchanged.
	Anew bool
	// Version is for the first item of Sync: the version of the set.
	Version int64
	// Generation is for Reschedule and Requeue: the generation of the requested run,
	// see [GenerationSize]. If it is empty, the task keeps its own.
	Generation string
	// Entry is for Import. Its id must be ID.
	Entry *Entry
	// Limit is for SetLimit. ID is then the handler's name.
	Limit *Limit
	// IfVersion is 0, or the task's Version: if the task has another, the command does not
	// change it (outcome Changed). So it is if there is no task and the command is Schedule. It
	// is not for Import, Sync and settings.
	IfVersion int64
	// Paused is for Schedule: the task is paused.
	Paused bool
	// Note is for PauseHandler: why the handler is paused, at most MaxText bytes of text.
	// ID is then the handler's name.
	Note string
}

// IsOver reports whether a Schedule of the task at the time at finds no more runs.
func (x *Item) IsOver(at Time) bool {
	if !x.Next {
		return false
	}
	end := x.Task.Repetition().End
	return end != 0 && at > end
}

// An Op is what a command does.
type Op uint8

const (
	// Schedule makes a task Pending, due at When. The outcome is Created for a new id,
	// Replaced for a Pending or Dead task, and Following for a Running task. If Keep or
	// [Keeping.Unique] forbids the change, the outcome is Kept.
	//
	// If the old and the new task repeat, a run that is due, being retried or running
	// stays, with its Due, its attempts and failures. It gets the new content at once, or
	// if it is running, when the attempt has ended but not the run. When says when the
	// task is due after that run, which is then Following; but if When is not later than
	// the run itself, that run is tried at When. With Item.Next and an unchanged
	// [Repetition], the time of what follows, or of a run that is not due yet, does not
	// change.
	//
	// If a task is over (see Item.Next), what stays of a run is its last. Otherwise a
	// Pending task is removed (outcome Removed), and in other states the outcome is Absent.
	//
	// A repeating task that is due at [Farthest] is paused. It stays paused if the new
	// task repeats too. A task that was paused by PauseTask or Item.Paused stays paused.
	Schedule Op = iota + 1
	// Reschedule moves a Pending task to When (outcome Moved). A Running task becomes
	// Following: it is due again at When, and waits then if it is paused. In other states the
	// outcome is Absent.
	//
	// This usually begins a new run, with the Generation and with When as its Due. But a
	// Pending task that has attempts continues its run, unless it is paused. The run of a
	// repeating task stays if it is due or has attempts: if When is later than the run
	// itself, the task is Following. A task that is paused by its time begins a new run.
	//
	// A Pending task that was paused by PauseTask or Item.Paused runs once at When, for one
	// attempt, and stays paused (outcome Once instead of Moved).
	Reschedule
	// Cancel removes a Pending task; the outcome is Removed. For a Running task the
	// outcome is Stopping: the task is removed when its attempt ends, unless it is
	// scheduled again. In other states the outcome is Absent.
	Cancel
	// Requeue makes a Dead task Pending, due at When, without attempts (outcome Moved).
	// In other states the outcome is Absent.
	//
	// The dead letter of a repeating task becomes a task without a schedule. Its new id
	// is the [SingleID] of its Due or, if that id exists, of the next unused time from
	// now on.
	Requeue
	// Purge removes a Dead task, or a finished run by its [RunID] (outcome Removed). In other
	// states, and for a run that has expired, the outcome is Absent. With the only run that was ever kept of a key, its head
	// entry goes too, unless the key cannot be scheduled yet.
	Purge
	// Import adds an entry of another store (outcome Created). If the id exists, the
	// outcome is Kept.
	//
	// A Running entry becomes Pending, due now, with its attempts. A Following entry whose
	// change applies after the attempt becomes Pending at Next, with its NextTask if there
	// is one, and without attempts: see [Entry.ChangesOnlyLater]. An entry that is Stopping
	// but not Following is invalid.
	Import
	// SetLimit sets a handler's limit (outcome Created or Replaced). A zero Limit
	// removes the limit (outcome Removed, or Absent if there was none). If [MaxLimits]
	// other handlers have a limit or are paused, nothing changes (outcome Kept). It takes
	// O(n) for n running tasks and n groups that have a state.
	SetLimit
	// PauseTask pauses a task: see the package comment. The outcome is Moved for a Pending
	// task, Following for a Running one, and Kept for a task that is paused and does not run
	// once. ResumeTask ends the pause; the outcome is Kept if there is none. In both cases a
	// dead letter, or a Running task that is only Stopping, has the outcome Absent.
	PauseTask
	ResumeTask
	// PauseHandler stops claims from getting tasks of a handler until ResumeHandler
	// (outcome Created). If the handler is paused already, only the Note changes (outcome
	// Replaced). If [MaxLimits] other handlers have a limit or are paused, nothing changes
	// (outcome Kept). ResumeHandler ends a pause (outcome Removed, or Absent if there is
	// none). Both wake the workers.
	PauseHandler
	ResumeHandler
	// Pause stops claims from getting tasks until Resume. Pause and Resume have no
	// items and no outcomes.
	Pause
	Resume
	// Sync makes the repeating tasks of a set those of the command. The ID of the first item
	// is the set's name, and its outcome is Created for a new set, or else Replaced. The other
	// items are the set's tasks: each is scheduled as with KeepSame, and has no Unique. Then all other repeating
	// tasks that the last Sync of the set had are cancelled.
	//
	// If the set has a higher Version already, all outcomes are Kept, and nothing changes.
	Sync
)

// Keep says when Schedule keeps the existing task with the id.
type Keep uint8

const (
	// KeepNone always replaces the existing task.
	KeepNone Keep = iota
	// KeepAny keeps an existing task in any state.
	KeepAny
	// KeepEarlier replaces a Pending or Following task only by one that is due earlier.
	KeepEarlier
	// KeepLater replaces a Pending or Following task only by one that is due later.
	KeepLater
	// KeepSame keeps a task that is not Dead if the new one has the same content. The
	// generation and the time may differ.
	KeepSame
)

// An Outcome says what a command did with a task.
type Outcome uint8

const (
	// Unknown means that no answer came: the command may or may not have taken effect.
	// Stores do not return it.
	Unknown Outcome = iota
	// Absent means that nothing was changed: there is no task with the id, or the command
	// does not apply to its state.
	Absent
	// Created means that the new task is pending. The key had no task.
	Created
	// Replaced means that the new task is pending and replaces a pending or dead one.
	Replaced
	// Kept means that the key's existing task is unchanged.
	Kept
	// Following means that the key's task is running, or is a repeating one whose run is
	// due or being retried. The new time applies afterwards.
	Following
	// Moved means that the task is pending at its new time.
	Moved
	// Removed means that the task is deleted and will not run.
	Removed
	// Stopping means that the running task was cancelled. The worker notices it when it
	// next extends the lease. The task ends with the current attempt.
	Stopping
	// Once means that the paused task runs once at its new time, and stays paused.
	Once
	// Changed means that nothing was changed: the task has another version than IfVersion.
	Changed
)

var outcomeNames = [...]string{"unknown", "absent", "created", "replaced", "kept", "following", "moved", "removed", "stopping", "once", "changed"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}
