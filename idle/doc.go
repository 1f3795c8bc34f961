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
// An event loop that knows the time tells it with [Entry.TouchAt], and a touch
// costs a few nanoseconds.
//
// A [Listener] closes the connections that it has accepted and that neither
// read nor write, for servers of any kind, net/http's and those over TLS among
// them:
//
//	l, err := net.Listen("tcp", addr)
//	err = http.Serve(idle.NewListener(l, 30*time.Second), handler)
//
// [Conns] does the same for connections that were dialed, and for several
// listeners together; [WithOnIdle] asks before it closes one.
//
// # How it works
//
// A touch moves no timer. It raises the time of the last activity, one atomic
// word. When the timer of an entry ends and the entry was touched meanwhile, it
// is set anew, to when the entry will be idle if nobody touches it again, or to
// shortly before, so that many are looked at together: about once in a timeout,
// however often it is touched. The state of an entry is
// part of the same word, so that a touch and the decision to evict are each one
// compare-and-swap, of which one comes first.
//
// A Monitor has a [timer.Scheduler] of its own rather than one that is shared.
// Timeouts of seconds need no tick of a tenth of a millisecond: with one of ten
// ([DefaultTick]) the timers that end come in batches, and wake-ups, which cost
// far more than the timers, are few. The clock is known to be the same. And
// [Monitor.Close] can hand back exactly what was watched without keeping a list
// of it.
//
// # Guarantees
//
//   - Never early: nothing is evicted before its timeout has passed since the
//     last touch that reported true.
//   - Late by at most a tick, a hundredth of the timeout ([WithSlack]), and the time
//     to wake up and to start the callback.
//   - A thing is evicted at most once for each time that it is watched. If Stop
//     returned true, it is not.
//   - An eviction, once decided, is not undone: from then on Touch reports
//     false. Touches never go backwards.
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
// Every method may be called from any goroutine and from inside callbacks.
// Callbacks run concurrently, except under a virtual clock, where they run one by
// one on the goroutine that advances it. Touches take no lock. What a goroutine
// did before Watch happens before the callback.
//
// # Complexity
//
// Everything is O(1). A touch allocates nothing. A watched thing takes 90 bytes
// besides the caller's pointer, if many have the same timeout: 48 for the Entry,
// with the pointer, 16 for a closure, and 34 for the timer. (A time.AfterFunc
// whose callback knows what it is for takes 130 to 160.)
//
// # When not to use it
//
// For a few hundred connections, [net.Conn]'s SetReadDeadline before each Read is
// as good: it costs what a time.Timer's Reset does, and needs a Read that is
// pending. [net/http.Server]'s IdleTimeout closes connections between requests
// and knows what a request is; this package knows of bytes. For a deadline that
// activity does not move, use package timer.
package idle
