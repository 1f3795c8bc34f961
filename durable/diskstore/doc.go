// Package diskstore keeps the tasks of package durable in a directory of this machine,
// with nothing to install: it is a log-structured database (Pebble) in the process.
//
// # Usage
//
//	st, err := diskstore.Open("tickless-data")
//	...
//	defer st.Close()
//	client := durable.New(st)
//
// # How it works
//
// All tasks are on the disk, in the order in which they are due. Those that are due
// within the next minute, and not more than some thirty thousand a shard, are in memory
// too, in a timing wheel (package timingwheel), and are read well before they are due. So
// memory does not grow with the number of tasks.
//
// Commands that come together are written together, with one sync of the disk. Filters in
// memory say of most new keys that there is no task with them, so that the disk need not
// be asked. They are of 16 MB at most, and while they are made again of twice that and 8
// bytes for each task that is scheduled meanwhile. After a store was opened they are made
// from the keys on the disk once many commands have had to ask.
//
// # Guarantees
//
//   - Those of package store. What a call has acknowledged survives the end of the
//     process, kill -9 and a power cut, as long as the disk keeps what it has synced.
//     [WithSync] trades the last moments for speed: as long as it says, and as a sync takes.
//   - What a call has read, or has been refused for, survives likewise.
//   - The Store accepts nothing after a write or a sync has failed: every call that
//     waits and every later one has an error that wraps [ErrFailed]. What had been
//     acknowledged is there when the store is opened again.
//   - Time is the wall clock's when the store is opened, and monotonic from then on. A
//     wall clock that is set back makes no task early and no lease longer. If it is set
//     forward by more than [MaxClockStep], or the machine sleeps, the Store logs that and
//     Check warns: what is due at a point in time is late by as much until the store is
//     opened again. So they do if it was set back while the store was closed: what was to
//     come after some time waits that much longer.
//   - A full disk: new tasks are refused with [store.ErrFull] before the disk is full,
//     as long as what runs can be reported: when less is left than the tables of
//     the tasks have, up to 512 MB, or than 64 MB or, of a small disk, an eighth. A Store
//     that is closed then can be opened
//     there again, unless somebody else has taken the room that was left.
//     If everything waits for room, as on a small disk with many callers, the Store fails
//     soon; nothing acknowledged is lost.
//   - Too many open files: the Store tries again for ten seconds before it fails.
//   - Checksums guard what is read. What is damaged is an error that wraps [ErrDamaged],
//     except the last 32 KB, and the last two batches of a shard, in a log that a crash
//     has left: there it looks as if the crash had cut it.
//   - Files of the log, *.log, that somebody removes while the store is open: what they
//     had is written to tables within a second of the next write, and the Store goes on.
//     If the process ends before that, what they had is lost. Open returns an error that
//     wraps ErrDamaged if all are gone, or the newest; of an older one [Check] may know.
//   - Nothing is written while nothing happens, and nothing is read but tasks that are
//     due soon.
//
// # Concurrency
//
// A Store may be used from any goroutine. One Store at a time has a directory: there is
// a lock.
//
// # Complexity
//
// Scheduling, cancelling and finishing a task are O(log n), and do not depend on how
// many have been finished before. Memory grows with the number of tasks that run, of
// senders of the last day, and of different handlers and schedules.
//
// # When not to use it
//
// Where tasks must outlive the machine, or several machines share them: a store on a
// server is for that. Do not put the directory on a network file system: its locks and
// syncs may do nothing.
package diskstore
