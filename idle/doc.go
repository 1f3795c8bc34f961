// Package idle evicts things that have gone silent: leases that are not renewed, peers
// that send no heartbeat, connections without traffic.
//
// # Usage
//
// A [Monitor] watches things of any type. Each has its own timeout:
//
//	m := idle.New(func(id string, since time.Time) { expire(id) })
//	lease, err := m.Watch("worker 17", 30*time.Second)
//	...
//	if !lease.Touch() {
//		// too late: the lease has expired
//	}
//	lease.Stop()
//
// Silence is no reason to evict a peer while a call to it runs: surround the call with
// [Entry.Hold] and [Entry.Release]. The function of [WithOnIdle] may refuse an eviction.
//
// An event loop that knows the time calls [Entry.TouchAt], which does not read the clock.
//
// A [Listener] closes its connections that neither read nor write. It also works over
// TLS:
//
//	l, err := net.Listen("tcp", addr)
//	server.Serve(idle.NewListener(l, 30*time.Second))
//
// A connection neither reads nor writes while its handler computes. If a computation may
// take longer than the timeout, refuse to evict connections whose handler is running: see
// [WithOnIdle] and, for net/http, the example "http" of Listener.
//
// A write is activity even if the peer is silent. To close connections to silent peers,
// watch the peers with a [Monitor], and touch a peer's entry for each message.
//
// [Conns] watches dialed connections, and the connections of several listeners.
//
// # Guarantees
//
//   - Never early: an entry is evicted only when its timeout has passed since the last
//     touch that returned true.
//   - Late by at most a tick of 10 ms ([WithTick]), plus 1 % of the timeout
//     ([WithSlackShare]), plus the time to wake up and to start the callback.
//   - After the process was suspended, for more than 0.1 s, entries get a grace: none is
//     evicted in the first quarter of its timeout, because heartbeats may wait in sockets.
//   - An entry is evicted at most once, and never after a Stop that returned true.
//   - An eviction is final: once it is decided, Touch returns false.
//   - No entry is lost: after Close, [Monitor.TakeLeftover] returns those that were still
//     watched.
//   - A callback that blocks or panics affects no other callback.
//   - A Monitor keeps no reference to a thing that was evicted or stopped.
//   - A Monitor has no goroutine while no entry is due within a second, and none after
//     Shutdown.
//   - A Conn reads and writes like the underlying connection, with the same errors,
//     deadlines and kernel copies (sendfile, splice). Only for net.Buffers it needs
//     [Conn.WriteBuffers].
//   - On Linux, a peer that still takes what was sent over TCP is not silent: see [Conn].
//   - All of this holds under a virtual clock (package timertest) and inside a
//     testing/synctest bubble.
//
// # How it works
//
// A touch moves no timer. It only stores the time of the entry's last activity.
//
// Entries that are due at about the same time share a list and one timer. When the timer
// fires, the Monitor checks each entry of the list. An entry that was touched meanwhile
// moves to the list for its new deadline. This happens about once per timeout, however
// often the entry is touched.
//
// If a touch and an eviction race, exactly one of them succeeds: each is a
// compare-and-swap of the same atomic word.
//
// # Concurrency
//
// Any goroutine may call any method, and so may callbacks. Callbacks run concurrently.
// Under a virtual clock they run one by one, on the goroutine that advances the clock.
// Touches take no lock. A call of Watch happens before the entry's callback.
//
// # Complexity
//
// Every operation is O(1). A touch allocates nothing.
//
// A watched entry takes 56 bytes, including the caller's pointer to it. An entry of a
// heap with a lock takes 99 bytes, and a time.AfterFunc with a closure 162.
//
// For 100,000 connections that send heartbeats, a Monitor takes about a quarter less CPU
// than timers of package time or a heap with a lock. Runs differ widely.
//
// # When not to use it
//
//   - A few hundred connections: call [net.Conn]'s SetReadDeadline before each Read. This
//     works only while a Read is pending.
//   - HTTP connections between requests: set [net/http.Server]'s IdleTimeout. It knows
//     what a request is; this package only sees bytes.
//   - A deadline that activity does not extend: use package timer.
package idle
