// Package executor decides which goroutine runs a callback.
//
// # Usage
//
//	pool := executor.NewPool()
//	err := pool.Submit(f)          // or SubmitBatch(fs)
//	err = pool.Shutdown(ctx)       // waits for accepted callbacks; Close does not
//
// [Inline] runs a callback on the goroutine that submits it. [Goroutines] starts one
// goroutine for each callback. [Pool] runs short callbacks on few goroutines, and adds
// goroutines when callbacks block. A Scheduler takes any [Executor]: one of these three,
// or any other type that has a Submit method.
//
// # Guarantees
//
//   - An accepted callback runs exactly once. After Close or Shutdown, a callback is
//     refused and never runs: Submit returns [ErrClosed].
//   - Submit never blocks, except that an [Inline] runs the callback.
//   - A callback that panics or calls [runtime.Goexit] harms no other callback. The
//     handler of [WithPanicHandler] gets the panic and its stack.
//   - On [Goroutines], a callback that blocks delays no other. On a [Pool] without
//     [WithMaxWorkers], it delays others by up to 3 ms, and a thousand that block by up to
//     5 ms, or 8 ms on one proc, on an idle machine.
//   - A [Pool] starts callbacks in the order in which it accepted them. With one worker
//     ([WithWorkers] and [WithMaxWorkers] of 1), each ends before the next begins.
//   - An executor does not keep callbacks reachable after they have run. An idle pool has
//     no goroutine, and at most 220 kB of memory.
//   - When Shutdown has returned nil, every callback has ended.
//   - An executor that is made inside a testing/synctest bubble keeps these guarantees
//     there.
//
// # Concurrency
//
// Any goroutine may call any method, and so may callbacks. What happens before Submit
// happens before its callback begins. The end of every callback happens before a Shutdown
// that returns nil. No user code runs under a lock of this package.
//
// # Complexity
//
// All methods take constant time for each callback. A callback that waits takes 9 bytes.
// A batch of 256 short callbacks takes a tenth of the time of 256 go statements.
//
// # When not to use it
//
// If a few more goroutines do not matter, the go statement is simpler. To bound
// concurrency within one function, use golang.org/x/sync/errgroup. A callback that needs
// its own goroutine belongs on [Goroutines]: for example if it calls runtime.LockOSThread
// without unlocking, or sets goroutine labels.
package executor
