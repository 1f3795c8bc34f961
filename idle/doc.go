// Package idle evicts what has gone silent: leases that are not renewed, peers that send
// no heartbeat, connections without traffic.
//
// # Usage
//
// A [Monitor] watches things of any type, each with a timeout of its own:
//
//	m := idle.New(func(id string, since time.Time) { expire(id) })
//	lease, err := m.Watch("worker 17", 30*time.Second)
//	...
//	if !lease.Touch() {
//		// too late: the lease has expired
//	}
//	lease.Stop()
//
// An event loop that knows the time passes it to [Entry.TouchAt]. A touch then costs a
// few nanoseconds.
//
// A [Listener] closes those of its connections that neither read nor write, also over
// TLS:
//
//	l, err := net.Listen("tcp", addr)
//	server.Serve(idle.NewListener(l, 30*time.Second))
//
// While a handler computes, its connection neither reads nor writes. If a computation may
// exceed the timeout, refuse to evict connections with a running handler. For net/http,
// see the example "http" of Listener. A server that keeps writing keeps its connection:
// to close one whose peer is silent, touch an entry of a [Monitor] with each message.
//
// [Conns] does the same for dialed connections, and for several listeners together.
// [WithOnIdle] sets a function that may refuse an eviction.
//
// # Guarantees
//
//   - Never early: an entry is not evicted before its timeout has passed since the
//     last touch that reported true.
//   - Late by at most a tick, plus 1 % of the timeout ([WithSlack]), plus the time
//     to wake up and to start the callback. If a Conns wakes up late by more than a quarter
//     of a connection's timeout, it waits another quarter: the process may have been stopped,
//     and bytes may wait in the socket.
//   - Each entry is evicted at most once, and never after a Stop that returned true.
//   - A decided eviction is final: from then on Touch reports false. An older
//     touch never replaces a later one.
//   - Nothing is lost: watched = evicted + stopped + handed back + watching.
//   - A callback that blocks or panics harms no other.
//   - A Monitor keeps no reference to what was evicted or stopped.
//   - A Monitor has no goroutine while nothing is due, and none after Shutdown. It uses no
//     file descriptor.
//   - A Conn reads and writes what the underlying connection does, with its
//     errors, its deadlines and its kernel copies.
//   - All of this holds under a virtual clock (package timertest) and inside a
//     testing/synctest bubble.
//
// # How it works
//
// A touch moves no timer. It only updates the time of the entry's last activity, an
// atomic word. Entries that may be evicted at the same moment, because of their slack,
// share a list with one timer. When the timer fires, an entry that was touched since then
// moves to the list for its new deadline. That happens about once in a timeout, however
// often the entry is touched. The same word contains the entry's state. So a touch is one
// compare-and-swap, and the decision to evict is another. Whichever comes first makes the
// other fail.
//
// A Monitor has a [timer.Scheduler] of its own rather than a shared one. Timeouts of
// seconds do not need a tick of a tenth of a millisecond. With a tick of ten milliseconds
// ([DefaultTick]) timers fire in batches, and wake-ups, which cost far more than timers,
// are few. And [Monitor.TakeLeftover] needs no list of its own to return exactly what was
// watched.
//
// # Concurrency
//
// Any goroutine may call any method, and so may callbacks. Callbacks run concurrently.
// Under a virtual clock they run one by one, on the goroutine that advances the clock.
// Touches take no lock. What a goroutine did before Watch happens before the callback.
//
// # Complexity
//
// Every operation is O(1). A touch allocates nothing. A watched entry takes 56 bytes with
// the caller's pointer. An entry of a heap with a lock takes 99, and a time.AfterFunc
// with a closure 160. If only hundreds of entries are watched, each has a list of its
// own, and takes a few hundred bytes more.
//
// With 100,000 connections that send heartbeats, a Monitor takes about a quarter less CPU
// than such a heap, and a fifth less than timers of package time. Most of the remaining
// cost is one cache miss for each touch.
//
// # When not to use it
//
// For a few hundred connections, calling [net.Conn]'s SetReadDeadline before each Read is
// as good: it costs as much as a time.Timer's Reset, and needs a pending Read.
// [net/http.Server]'s IdleTimeout closes connections between requests and knows what a
// request is; this package only sees bytes. For a deadline that activity does not extend,
// use package timer.
package idle
