package durable

import "github.com/tickless/tickless/durable/store"

// An Outcome says what a command did to a task. [store.Outcome] documents each.
type Outcome = store.Outcome

const (
	Unknown   = store.Unknown   // it is not known whether the command was carried out
	Absent    = store.Absent    // no such task, and nothing was done
	Created   = store.Created   // pending; there was none with its key
	Replaced  = store.Replaced  // pending, in place of one that was pending or dead
	Kept      = store.Kept      // the task that the key has stays as it is
	Following = store.Following // running; it runs again at its new time
	Moved     = store.Moved     // the pending task has another time
	Removed   = store.Removed   // gone: it will not run
	Stopping  = store.Stopping  // running, and asked to stop; none follows
)

// A State is where a task is: [Pending], [Running] or [Dead]. It is in one place at any
// time. A run that has ended is [Past].
type State = store.State

const (
	Pending = store.Pending // it waits for its time, or for its next attempt
	Running = store.Running // a worker has a lease on it
	Dead    = store.Dead    // it is a dead letter
	Past    = store.Past    // a run that has ended, and is kept: see Retention
)
