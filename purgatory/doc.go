// Package purgatory holds requests that cannot be answered yet, each until its
// condition is met or a timeout passes.
//
// The idea is from Apache Kafka. There a fetch request waits until its partitions have
// enough bytes. The partitions are the request's keys. The code that changes a partition
// checks the requests that wait for it.
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
//   - OnExpiration runs after OnComplete, if the timeout completed the operation. It
//     never runs early.
//   - No completion is lost. Suppose that an operation waits, its condition becomes true,
//     and then one of its keys is checked. When the check returns, the operation is
//     complete or was cancelled.
//   - Adding an operation runs TryComplete at most twice, whatever the number of keys.
//   - A completed operation leaves the lists of all its keys at once. Its timer stops.
//   - No operation waits without a timeout. If the Scheduler refuses the timer, adding
//     the operation fails.
//   - A panic in one operation harms no other: see [Operation].
//   - Close and Shutdown complete nothing: TakeLeftover returns the waiting operations.
//
// # Concurrency
//
// Any goroutine may call any method. OnComplete and OnExpiration run under no lock and
// may call any method, even for the same key. They run on the goroutine that completed
// the operation. At the timeout they run on the Scheduler's executor, or on a goroutine
// of their own if the executor refuses them.
//
// TryComplete runs under its operation's lock. It must not complete or check an
// operation: if it would have to wait for a lock, it panics.
//
// CheckAndComplete waits for a running TryComplete of each operation. So do not call it
// while you hold a lock that a TryComplete takes.
//
// # Complexity
//
// TryCompleteElseWatch, completion, expiry and cancellation are O(k) for an operation
// with k keys. CheckAndComplete is O(n) for n operations that wait for the key. A
// waiting operation takes about 55 bytes, timer included, and 32 for each key. Its
// Delayed takes another 72. A key that no operation waits for takes no memory.
//
// # When not to use it
//
// For a single event that one goroutine waits for, use a channel and a context. If an
// event always completes exactly one request, known by an ID, use a map of requests
// with a [timer.Handle] each. Keys pay off if several requests wait for one event, or
// one request for several.
package purgatory
