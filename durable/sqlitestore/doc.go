// Package sqlitestore is a store for package durable that keeps its tasks in an SQLite
// file on this machine. It needs no installation: the driver, modernc.org/sqlite, needs
// no C compiler.
//
// # Usage
//
//	st, err := sqlitestore.Open("tasks.db")
//	...
//	defer st.Close()
//	client := durable.New(st)
//
// A program that keeps its own data in SQLite can store the tasks in the same file with
// [OpenDB], and schedule tasks in its own transactions with [Store.ScheduleTx].
//
// # Guarantees
//
//   - Those of package store. Acknowledged commands survive the end of the process, kill -9
//     and a power failure, as long as the disk keeps what it has synced. [WithSyncInterval]
//     gives up the last moments before a power failure for speed.
//   - The times of tasks follow the wall clock; leases are durations. Setting the clock or
//     suspending the machine ends no lease. If the clock is set back, pending tasks wait until
//     it shows their times again.
//   - A full disk is an error that wraps [store.ErrFull]. The call has no effect, and the Store
//     continues when there is space.
//   - The log beside the file stays below some 100 MB, unless a reader keeps a transaction open
//     for long.
//   - Any other disk error fails the calls of one transaction. The Store continues.
//   - Each row has a checksum. Claims skip a task whose row is damaged. [Store.Verify] finds it,
//     and scheduling its key again replaces it. A file that SQLite cannot read, or an index that
//     does not match the rows, is an error that wraps [ErrDamaged].
//   - If the file or its log is removed or replaced while the Store is open, every later call
//     returns an error that wraps [ErrGone].
//   - While nothing happens, the Store writes nothing and, on Linux, does not wake up.
//
// # How it works
//
// A Store runs package machine over four tables, whose names begin with tickless_. One
// goroutine writes: it puts all waiting calls into one transaction, so that they share
// a sync of the disk. Readers have their own connections.
//
// Several processes may use a file; transactions decide which worker gets a task. On
// Linux, inotify tells a Store within milliseconds that another process has committed.
// Elsewhere the Store checks every 50 ms. [WithOneProcess] turns that off.
//
// # Concurrency
//
// A Store may be used from any goroutine, and a file by any number of Stores in any
// number of processes. A program that uses a Store must not open the file, or the files
// beside it that end in -wal and -shm, other than through SQLite, for example to copy
// them: closing them releases SQLite's locks. [Store.Backup] copies a file that is in
// use. Other programs that write to the file must use SQLite 3.51.3 or later: a bug in
// earlier versions can damage the file.
//
// # Complexity
//
// Scheduling, cancelling and finishing a task are O(log n) in the number of tasks. A
// claim queries the index once for each handler of the worker, and once for each pair
// of a handler and a schedule. Memory does not grow with the number of tasks: SQLite's
// caches have at most 32 MB.
//
// # When not to use it
//
// If several machines share the tasks, use a store on a server. A file on a network
// file system is refused where it is recognized. A file has one writer at a time, so
// some ten thousand tasks a second are the maximum.
package sqlitestore
