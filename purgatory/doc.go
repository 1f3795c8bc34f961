// Package purgatory holds requests that cannot be answered yet, until a
// condition holds for one of their keys or a timeout passes.
//
// It is the request purgatory of Apache Kafka, where a produce request waits for the
// acknowledgements of replicas, and a fetch request for enough bytes, on any of the
// partitions that it names. The code that changes a partition checks the requests that wait
// for it.
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
//	p.CheckAndComplete(partition) // when it has grown
//	f.ForceComplete()             // when the client has gone
//
// # Guarantees
//
//   - An operation is completed once, and OnComplete runs once. Only the call that
//     completed it returns true.
//   - OnExpiration comes after OnComplete, and only if the timeout completed the
//     operation. It never comes early.
//   - TryComplete runs at most twice at the start, whatever the number of keys,
//     and never once the operation is complete.
//   - No completion is lost. If the condition of a waiting operation comes true and
//     then one of its keys is checked, the operation is complete when that check
//     returns, unless it was cancelled. If the operation is just being added,
//     TryCompleteElseWatch sees the condition in its second check.
//   - Completion and expiry remove an operation from the lists of all its keys, and
//     stop its timer, at once. Nothing is purged later, nothing is kept alive, and
//     the gauges are exact. A key that no operation waits for takes no memory.
//   - No operation waits without a timeout. If the Scheduler refuses the timer,
//     TryCompleteElseWatch returns its error.
//   - A panic in one operation harms no other. [Operation] says where it goes.
//   - Close and Shutdown complete nothing. TakeLeftover has the operations that were waiting.
//
// # Concurrency
//
// Any goroutine may call any method. OnComplete and OnExpiration run under no lock
// and may call anything, on the same key too. They run on the goroutine that
// completed the operation; at the timeout, on the Scheduler's executor, or on a goroutine of
// their own if the executor refuses them.
//
// TryComplete runs under its operation's lock. It must not complete or check an
// operation; where it would have to wait, it panics. A check of an operation waits
// for a running TryComplete of it. So do not check while you hold a lock that a
// TryComplete takes.
//
// # Complexity
//
// TryCompleteElseWatch, completion, expiry and cancellation are O(k) for an operation
// with k keys. CheckAndComplete is O(n) for n operations that wait for the key. A
// waiting operation takes about 55 bytes and 32 for each key, its timer included,
// besides the 72 of its Delayed.
//
// # When not to use it
//
// For a single event that one goroutine waits for, use a channel and a context. If an
// event always completes exactly one request, known by an ID, use a map of requests
// with a [timer.Handle] each. Keys pay off where several requests wait for one thing,
// or one request for several.
package purgatory
