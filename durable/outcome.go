package durable

import "github.com/tickless/tickless/durable/store"

// An Outcome says what a command did with a task. [store.Outcome] documents the values.
type Outcome = store.Outcome

const (
	Unknown   = store.Unknown   // the effect of the command is unknown
	Absent    = store.Absent    // no such task; no effect
	Created   = store.Created   // the new task is pending; the key had none
	Replaced  = store.Replaced  // the new task is pending; it replaced a pending or dead one
	Kept      = store.Kept      // the key's existing task is unchanged
	Following = store.Following // the task is running, and runs again at its new time
	Moved     = store.Moved     // the pending task has a new time
	Removed   = store.Removed   // the task is deleted and will not run
	Stopping  = store.Stopping  // the task is running and was asked to stop
	Once      = store.Once      // the paused task runs once at its new time, and stays paused
	Changed   = store.Changed   // the task has another version than IfVersion; no effect
)

// A task has one State: [Pending], [Running] or [Dead]. A finished run that is kept is
// [Past].
type State = store.State

const (
	Pending = store.Pending // waits for its time or its next attempt
	Running = store.Running // a worker has a lease on the task
	Dead    = store.Dead    // a dead letter
	Past    = store.Past    // a finished run that is kept: see Retention
)
