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
// The Store keeps the promises of package store, and these:
//
//   - Acknowledged commands survive the end of the process, kill -9 and a power failure,
//     if the disk keeps what it has synced. [WithSyncInterval] is faster, but then a
//     power failure loses the latest commands.
//   - Tasks are due by the wall clock. If the clock is set back by an hour, pending tasks
//     wait an hour longer. Leases are durations: neither setting the clock nor suspending
//     the machine ends a lease.
//   - If the disk is full, a call has no effect and returns an error that wraps
//     [store.ErrFull]. The Store continues when there is space.
//   - Any other disk error fails the calls of one transaction. The Store continues.
//   - The log beside the file stays below some 100 MB, unless a reader keeps a
//     transaction open for long.
//   - Each row has a checksum. Claims skip a task with a damaged row. Other commands on it
//     return an error that wraps [ErrDamaged], and [Store.Verify] finds it. Scheduling its
//     key again replaces the row.
//   - [Store.Check] warns of an index that lacks tasks, and [Store.Repair] makes it again.
//   - If SQLite cannot read the file, or an index does not match the rows, calls return
//     an error that wraps [ErrDamaged].
//   - If the file or its log is removed or replaced while the Store is open, every later
//     call returns an error that wraps [ErrGone].
//   - While nothing happens, the Store writes nothing and, on Linux, does not wake up.
//
// # How it works
//
// A Store runs package machine over tables whose names begin with tickless_. One
// goroutine writes. It puts all waiting calls into one transaction, so that they share a
// sync of the disk. Readers have their own connections.
//
// Several processes may use a file; transactions decide which worker gets a task. On
// Linux, inotify tells a Store within milliseconds that another process has committed.
// Elsewhere the Store checks every 50 ms. [WithOneProcess] turns that off.
//
// # Concurrency
//
// A Store may be used from any goroutine. Any number of Stores in any number of processes
// may use a file.
//
// In a program that uses a Store, open the file only through SQLite: closing it in another
// way releases SQLite's locks. The same holds for the files beside it that end in -wal and
// -shm. To copy the file, use [Store.Backup]. To put a copy in its place, use [Restore]:
// SQLite would apply the old -wal to a file that was only copied, and lose tasks.
//
// Other programs that write to the file must use SQLite 3.51.3 or later: a bug in earlier
// versions can damage the file.
//
// # Complexity
//
// Scheduling, cancelling and finishing a task are O(log n) in the number of tasks. A
// claim queries the index for each handler of the worker, and for each pair of a handler
// and a schedule. Memory does not grow with the number of tasks: SQLite's caches have at
// most 11 MB.
//
// # When not to use it
//
// If several machines share the tasks, use a store on a server: [Open] refuses a file on
// a network file system if it recognizes one. A file has one writer at a time, so it
// handles about 25,000 tasks a second. In a testing/synctest bubble use package memstore: there
// time stands still while a Store waits for the system.
package sqlitestore
