// Package purgatory holds requests that cannot be answered yet, each until its condition
// is met or a timeout passes.
//
// It is the request purgatory of Apache Kafka. There a produce request waits for the
// acknowledgements of replicas, and a fetch request for enough bytes, on any of the
// partitions that it names. The code that changes a partition checks the requests that
// wait for that partition.
//
// # Usage
//
//	type fetch struct {
//		purgatory.Delayed[Partition] // makes it an Operation
//		...
//	}
//
//	func (f *fetch) TryComplete() bool { return f.bytes() >= f.minBytes }
//	func (f *fetch) OnComplete()       { f.answer() }
//	func (f *fetch) OnExpiration()     { expired.Inc() }
//
//	p := purgatory.New[Partition](scheduler)
//	done, err := p.TryCompleteElseWatch(f, 500*time.Millisecond, f.partitions...)
//	...
//	p.CheckAndComplete(partition) // when the partition has grown
//	f.ForceComplete()             // when the client has gone
//
// # Guarantees
//
//   - An operation is completed once, and OnComplete runs once. Only the call that
//     completed it returns true.
//   - OnExpiration runs after OnComplete, and only if the timeout completed the
//     operation. It never runs early.
//   - When an operation is added, TryComplete runs at most twice, whatever the number of keys.
//     It never runs after the operation is complete.
//   - No completion is lost. If the condition of a waiting operation becomes true and
//     then one of its keys is checked, the operation is complete when that check
//     returns, unless it was cancelled. If the operation is just being added,
//     TryCompleteElseWatch sees the condition in its second check.
//   - Completion and expiry remove an operation from the lists of all its keys, and
//     stop its timer, at once. Nothing is purged later, nothing is kept alive, and
//     the gauges are exact. A key that no operation waits for takes no memory.
//   - No operation waits without a timeout. If the Scheduler refuses the timer,
//     TryCompleteElseWatch returns the Scheduler's error.
//   - A panic in one operation harms no other. [Operation] says where the panic goes.
//   - Close and Shutdown complete nothing. TakeLeftover returns the operations that were
//     waiting.
//
// # Concurrency
//
// Any goroutine may call any method. OnComplete and OnExpiration run under no lock and
// may call any method, even for the same key. They run on the goroutine that completed
// the operation. At the timeout they run on the Scheduler's executor, or on a goroutine
// of their own if the executor refuses them.
//
// TryComplete runs under its operation's lock. It must not complete or check an
// operation; where it would have to wait, it panics. A check of an operation waits for a
// running TryComplete of that operation. So do not check while you hold a lock that a
// TryComplete takes.
//
// # Complexity
//
// TryCompleteElseWatch, completion, expiry and cancellation are O(k) for an operation
// with k keys. CheckAndComplete is O(n) for n operations that wait for the key. A waiting
// operation takes about 55 bytes and 32 for each key, its timer included, besides the 72
// of its Delayed.
//
// # When not to use it
//
// For a single event that one goroutine waits for, use a channel and a context. If an
// event always completes exactly one request, known by an ID, use a map of requests with
// a [timer.Handle] each. Keys pay off if several requests wait for one event, or one
// request for several.
package purgatory
