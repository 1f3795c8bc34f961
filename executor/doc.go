// Package executor decides on which goroutine a callback runs.
//
// # Usage
//
//	pool := executor.NewPool()
//	err := pool.Submit(f)          // or SubmitBatch(fs)
//	err = pool.Shutdown(ctx)       // waits for what was accepted; Close does not
//
// [Inline] runs callbacks on the submitter, [Goroutines] starts one goroutine for
// each, [Pool] shares few goroutines among short callbacks and grows when callbacks
// block. A Scheduler takes any of them as its [Executor], and any other type that
// has Submit. [Func] makes an Executor of a function.
//
// # Guarantees
//
//   - An accepted callback runs exactly once. One that is refused, after Close, never runs:
//     its submitter gets an error, and the refusal is counted.
//   - Submit never blocks, except that an [Inline] runs the callback.
//   - A callback that panics or calls [runtime.Goexit] harms no other. Panics
//     go to the handler of [WithPanicHandler] with their stack.
//   - A callback that blocks delays no other on [Goroutines]. On a [Pool] whose
//     workers are not bounded it delays others by a few milliseconds.
//   - One worker ([WithWorkers] and [WithMaxWorkers] of 1) runs callbacks in the
//     order in which they were accepted. Several workers begin them in that order.
//   - An executor does not keep callbacks reachable after they have run. An idle pool
//     has no goroutine, and keeps at most 220 kB of memory whatever its peak was.
//   - Once Close or Shutdown has been called, Submit returns [ErrClosed]. When Shutdown has
//     returned nil, every callback has ended.
//   - All of it holds inside a testing/synctest bubble, for an executor made
//     in that bubble.
//
// # Concurrency
//
// Any goroutine may call any method, and so may callbacks. What happens before Submit
// happens before its callback begins, and the end of every callback happens before a
// Shutdown that returns nil. No user code runs under a lock of this package.
//
// # Complexity
//
// All methods take constant time for each callback. A callback that waits takes 9 bytes. A
// batch of 256 short callbacks takes a tenth of the time of a go statement for each.
//
// # When not to use it
//
// Where a few more goroutines do not matter, the go statement is simpler. To bound
// concurrency within one function, use golang.org/x/sync/errgroup. A callback that
// must keep its goroutine to itself (runtime.LockOSThread without the unlock,
// goroutine labels) belongs on [Goroutines].
package executor
