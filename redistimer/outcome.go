package redistimer

import "fmt"

// An Outcome says what a command did to a task.
type Outcome uint8

const (
	// Unknown is what happened to the tasks of a batch whose command failed: it
	// may have been carried out or not.
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
