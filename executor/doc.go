// Package executor decides on which goroutine a callback runs.
//
// # Usage
//
//	pool := executor.NewPool()
//	err := pool.Submit(f)          // or SubmitBatch(fs)
//	err = pool.Shutdown(ctx)       // waits for what was accepted
//
// [Inline] runs callbacks on the submitter, [Goroutines] starts one goroutine
// for each, [Pool] shares few goroutines among short callbacks and grows when
// callbacks block. Timers take any of them as their [Executor].
//
// # Guarantees
//
//   - What was accepted runs exactly once; what was refused never runs, is
//     told to its submitter and counted. Nothing is dropped silently.
//   - A callback that panics or calls [runtime.Goexit] harms no other. Panics
//     go to the handler of [WithPanicHandler] with their stack.
//   - On [Goroutines] a callback that blocks delays no other; on a [Pool] whose
//     workers are not bounded, by a few milliseconds at most.
//   - One worker ([WithWorkers] and [WithMaxWorkers] of 1) runs callbacks in
//     the order in which they were accepted. Several begin them in that order.
//   - Nothing that has run stays reachable from here. An idle pool has no
//     goroutine, and at most 150 kB of memory whatever its peak was.
//   - When Shutdown has returned nil every callback has ended, and Submit's
//     error is [ErrShutdown] from when Shutdown was called.
//   - All of it holds inside a testing/synctest bubble, for an executor made
//     in that bubble.
//
// # Concurrency
//
// Every method may be called from any goroutine, callbacks among them. What
// happens before Submit happens before its callback begins, and the end of
// every callback happens before a Shutdown that returns nil. No user code runs
// under a lock of this package.
//
// # Complexity
//
// All methods take constant time for each callback. A pool copies what it is
// given, and takes its lock once for each Submit and for each 256 callbacks of
// a batch. It allocates nothing while fewer than 16,000 callbacks wait, and
// 9 bytes for each callback beyond. In the benchmarks of this package batches
// of 256 short callbacks take a tenth of what a go statement for each does, or
// less, and bursts of single Submits a sixth. A single callback on an idle
// pool costs the same as a go statement.
//
// # When not to use it
//
// Where a few goroutines more do not matter, the go statement is simpler. To
// bound concurrency within one function, use golang.org/x/sync/errgroup. A
// callback that must keep its goroutine to itself (runtime.LockOSThread
// without the unlock, goroutine labels) belongs on [Goroutines].
package executor
