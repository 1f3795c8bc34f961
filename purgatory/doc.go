// Package purgatory holds requests that cannot be answered yet, each until its
// condition is met or a timeout passes.
//
// The idea is from Apache Kafka. There a fetch request waits until its partitions have
// enough bytes. The partitions are the request's keys. The code that changes a
// partition checks the requests that wait for it.
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
//	done, err := p.CompleteOrWatch(f, 500*time.Millisecond, f.partitions...)
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
//   - No completion is lost: if the condition of a waiting operation is true when one
//     of its keys is checked, the operation is completed.
//   - Adding an operation calls TryComplete at most twice, whatever the number of keys.
//   - A completed operation is immediately removed from the lists of all its keys, and
//     its timer stops.
//   - No operation waits without a timeout. If the Scheduler refuses the timer, adding
//     the operation fails.
//   - A panic in one operation harms no other: see [Operation].
//   - Close and Shutdown complete nothing: TakeLeftover returns the waiting operations.
//
// # Concurrency
//
// Any goroutine may call any method. OnComplete and OnExpiration run under no lock and
// may call any method too. They run on the goroutine that completed the operation, or
// on the Scheduler's executor after a timeout.
//
// TryComplete runs under a lock of its operation, and must only report whether the
// condition holds: see [Operation].
//
// # Complexity
//
// CompleteOrWatch, completion, expiry and cancellation are O(k) for an operation
// with k keys. CheckAndComplete is O(n) for n operations that wait for the key. A
// waiting operation takes about 130 bytes, timer included, and 32 for each key.
//
// # When not to use it
//
// For a single event that one goroutine waits for, use a channel and a context. If an
// event always completes exactly one request, known by an ID, use a map of requests
// with a [timer.Handle] each. This package is for events that complete several
// requests, and for requests that wait for several events.
package purgatory
