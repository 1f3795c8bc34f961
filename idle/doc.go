// Package idle evicts what has gone silent: leases that are not renewed, peers
// that send no heartbeat, connections on which nothing happens.
//
// # Usage
//
// A [Monitor] watches anything, each thing with a timeout of its own:
//
//	m := idle.New(func(id string, since time.Time) { expire(id) })
//	lease, err := m.Watch("worker 17", 30*time.Second)
//	...
//	if !lease.Touch() {
//		// too late: it has expired
//	}
//	lease.Stop()
//
// An event loop that knows the time passes it to [Entry.TouchAt]. A touch then costs
// a few nanoseconds.
//
// A [Listener] closes those of its connections that neither read nor write, also over TLS:
//
//	l, err := net.Listen("tcp", addr)
//	server.Serve(idle.NewListener(l, 30*time.Second))
//
// While a handler computes for longer than the timeout, its connection neither reads nor
// writes. With net/http, refuse to evict connections whose handlers run: see the example
// "http" of Listener.
//
// [Conns] does the same for dialed connections, and for several listeners together.
// [WithOnIdle] sets a function that may refuse an eviction.
//
// # How it works
//
// A touch moves no timer. It raises the time of the last activity, one atomic word.
// Entries that may be evicted at the same moment, by their slack, are in a list that has
// one timer. When it fires, an entry that was touched meanwhile moves to the list of when
// it will be idle if nobody touches it again. That happens about once in a timeout, however
// often the entry is touched. The state of an entry is part of the same word. So a touch
// and the decision to evict are each one compare-and-swap, and one of them comes first.
//
// A Monitor has a [timer.Scheduler] of its own rather than one that is shared.
// Timeouts of seconds need no tick of a tenth of a millisecond. With a tick of ten
// milliseconds ([DefaultTick]) timers fire in batches, and wake-ups, which cost far
// more than timers, are few. [Monitor.TakeLeftover] can return exactly what was watched
// without keeping a list of it.
//
// # Guarantees
//
//   - Never early: nothing is evicted before its timeout has passed since the
//     last touch that reported true.
//   - Late by at most a tick, a hundredth of the timeout ([WithSlack]), and the time
//     to wake up and to start the callback. If a Conns wakes up late by more than a quarter
//     of a connection's timeout, it waits another quarter: the process may have been stopped,
//     and bytes may wait in the socket.
//   - Each entry is evicted at most once, and never after a Stop that returned true.
//   - An eviction, once decided, is final: from then on Touch reports false. An older
//     touch never replaces a later one.
//   - Nothing is lost: watched = evicted + stopped + handed back + watching.
//   - A callback that blocks or panics harms no other.
//   - What was evicted or stopped is not kept alive.
//   - No goroutine while nothing is due, and none after Shutdown. No file
//     descriptor.
//   - A Conn reads and writes what the connection underneath does, with its
//     errors, its deadlines and its fast ways to copy.
//   - All of it works under a virtual clock (package timertest) and inside a
//     testing/synctest bubble.
//
// # Concurrency
//
// Any goroutine may call any method, and so may callbacks. Callbacks run
// concurrently. Under a virtual clock they run one by one, on the goroutine that
// advances the clock. Touches take no lock. What a goroutine did before Watch happens
// before the callback.
//
// # Complexity
//
// Everything is O(1). A touch allocates nothing. A watched thing takes 56 bytes with the
// caller's pointer; an entry of a heap under a lock takes 99, and a time.AfterFunc with a
// closure 160. Where only hundreds are watched, each has a list of its own, and takes some
// hundred bytes more.
//
// With 100,000 connections that send heartbeats, a Monitor takes about a quarter less CPU
// than such a heap, and a fifth less than timers of package time. Most of what is left is
// one miss of the processor's caches a touch.
//
// # When not to use it
//
// For a few hundred connections, [net.Conn]'s SetReadDeadline before each Read is as
// good: it costs as much as a time.Timer's Reset, and needs a pending Read.
// [net/http.Server]'s IdleTimeout closes connections between requests and knows what
// a request is; this package only sees bytes. For a deadline that activity does not
// extend, use package timer.
package idle
