// Package purgatory holds requests that cannot be answered yet, until a
// condition holds for one of their keys or a timeout passes.
//
// It is the request purgatory of Apache Kafka, where a produce request waits for
// the acknowledgements of replicas, and a fetch request for enough bytes, on any
// of the partitions that it names: whoever changes a partition asks those that
// wait for it whether they are complete now.
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
//   - An operation is completed once, and OnComplete runs once. True is returned
//     only to the one that completed it.
//   - OnExpiration comes after OnComplete, and only if the timeout completed the
//     operation. It never comes early.
//   - TryComplete runs at most twice at the start, whatever the number of keys,
//     and never once the operation is complete.
//   - No completion is lost: if the condition of an operation that waits comes
//     true and then one of its keys is checked, the operation is complete when
//     that check returns, whoever else was looking at the time, unless it was
//     taken out. If it was only being given, the second check sees it.
//   - Completion and expiry take an operation out of the lists of all its keys,
//     and stop its timer, at once. Nothing is purged later, nothing is kept
//     alive, and the gauges are exact. A key that nobody waits for takes no
//     memory.
//   - No operation waits without a timeout: if there is no timer to be had,
//     TryCompleteElseWatch says so.
//   - A panic in one operation harms no other; [Operation] tells where it goes.
//   - Shutdown completes nothing. It hands back what was waiting.
//
// # Concurrency
//
// Every method may be called from any goroutine. OnComplete and OnExpiration run
// under no lock and may call anything, on the same key too. They run on the
// goroutine of whoever completed the operation, at the timeout on the
// Scheduler's executor. That executor must refuse nothing: what it refuses never
// expires.
//
// TryComplete runs under its operation's lock, and must not ask for an
// operation to be completed; it panics where that would make it wait. Whatever
// checks an operation waits for a TryComplete of it that is running: no check
// must be made with a lock held that a TryComplete takes.
//
// # Complexity
//
// TryCompleteElseWatch, completion, expiry and cancellation are O(k) for an
// operation with k keys. CheckAndComplete asks all n operations of its key. An
// operation that waits takes about 50 bytes and 32 for each key, its timer
// included, besides the 80 of its Delayed.
//
// # When not to use it
//
// For a single event that one goroutine waits for, use a channel and a context.
// If an event always completes exactly one request, known by an ID, a map of
// requests with a [timer.Handle] each does it: keys pay where several requests
// wait for one thing, or one request for several.
package purgatory
