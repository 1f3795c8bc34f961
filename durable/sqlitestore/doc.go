// Package sqlitestore keeps the tasks of package durable in an SQLite file of this machine.
// There is nothing to install: the driver, modernc.org/sqlite, needs no C compiler.
//
// # Usage
//
//	st, err := sqlitestore.Open("tasks.db")
//	...
//	defer st.Close()
//	client := durable.New(st)
//
// A program that keeps its own data in SQLite can have the tasks in the same file, see
// [OpenDB], and schedule in its own transactions: see [Store.ScheduleTx].
//
// # How it works
//
// A Store is package machine over three tables, whose names begin with tickless_. One
// goroutine writes: it puts all calls that wait into one transaction, so that they share a
// sync of the disk. Readers have connections of their own.
//
// Several processes may open a file, and work on it: the transaction decides who gets a
// task. A Store notices what another process has committed within some milliseconds on
// Linux, by inotify, and elsewhere within 50 ms, by looking. [WithOneProcess] turns that
// off.
//
// # Guarantees
//
//   - Those of package store. What a call has acknowledged survives the end of the
//     process, kill -9 and a power cut, as long as the disk keeps what it has synced.
//     [WithSyncInterval] trades the last moments for speed.
//   - Moments follow the wall clock, and leases are durations: a clock that is set, or a
//     machine that sleeps, ends no lease. What is due at a moment, or after some time, waits
//     when the clock is set back until it shows the moment again.
//   - A full disk is an error that wraps [store.ErrFull]: the call is not carried out, and
//     the Store goes on when there is room.
//   - The log beside the file has some 100 MB at most, unless somebody reads for long.
//   - Any other error of the disk fails the calls of one transaction. The Store goes on.
//   - Each row has a checksum. A task whose row is damaged is not handed out, and all others
//     are; [Store.Verify] finds it, and who schedules it again replaces it. A file that SQLite
//     cannot read, and a claim that meets an index that does not fit the rows, are an error
//     that wraps [ErrDamaged].
//   - If the file, or its log, is removed or replaced while the Store is open, every later
//     call has an error that wraps [ErrGone].
//   - Nothing is written and, on Linux, nothing wakes while nothing happens.
//
// # Concurrency
//
// A Store may be used from any goroutine, and a file by any number of Stores of any number
// of processes. The programs must not open the file, or the two beside it that end in -wal
// and -shm, by other means than SQLite, for a copy for example: closing them drops SQLite's
// locks. [Store.Backup] copies a file in use. Other programs that write to the file must use
// SQLite 3.51.3 or later: earlier ones have a fault that can damage it.
//
// # Complexity
//
// Scheduling, cancelling and finishing a task are O(log n) in the number of tasks. A claim
// asks the index once for each handler, and for each of them together with each schedule,
// that the worker has. Memory does not grow with the number of tasks: SQLite's caches have
// 32 MB at most.
//
// # When not to use it
//
// Where several machines share the tasks: a store on a server is for that. A file on a
// network file system is refused where it is recognised. One writer at a time writes to a
// file, so some ten thousand tasks a second are the most.
package sqlitestore
