// Package timer runs functions later: very many of them, at little cost.
//
// It replaces [time.AfterFunc], [time.Ticker] and [context.WithTimeout] where their
// cost shows: in servers that keep tens of thousands of timeouts or more, for requests,
// connections, retries, leases or cache entries, and stop most of them before they
// fire.
//
// # Usage
//
//	s := timer.New()
//	defer s.Close()
//	h, err := s.Start(30*time.Second, func() { fail(request) })
//	...
//	if h.Stop() {
//		// the function will never run
//	}
//
// Most programs need one Scheduler: [Default], which the package's functions use. Use
// [New] for one that has options, or that is closed before the program ends.
//
// A Scheduler has all of this:
//
//   - [Scheduler.Start] with its [Handle] is the cheapest timer; it allocates
//     nothing. A timer of [Scheduler.StartWithin] may fire somewhat late, together
//     with others: from about a thousand a second on that saves CPU.
//   - [Scheduler.AfterFunc], NewTimer, NewTicker, After, Tick and Sleep work as in
//     package time. This package has functions of the same names on a default
//     Scheduler, except that After and Tick are package time's own.
//   - [Init] turns a field of your own type into a [Timer] whose function takes that
//     type as its argument. It suits a connection's timeout, which is started and
//     stopped again and again: it allocates nothing and needs no closure.
//   - [Scheduler.WithTimeout] and [Scheduler.WithDeadline] make contexts. They cost
//     no timer until somebody waits for them.
//   - [Deadline] is what a SetReadDeadline method needs: a moment that is set again
//     and again, and a channel that is closed when it has passed.
//   - [Scheduler.Every] and [Scheduler.Repeat] run a function again and again,
//     with a period or by the wall clock.
//   - [NewKeyed] keeps one timer for each key, to set, move, remove and drain.
//   - A [Group] is timers that are stopped together, and can wait for its callbacks.
//     [Scheduler.StartBatch] starts many timers under one lock.
//
// # How it works
//
// A Scheduler has a few shards, each a hierarchical timing wheel (as in package
// timingwheel) under its own lock. Only buckets that hold timers wait, in a delay
// queue ordered by expiration (package delayqueue), and one poller sleeps until the
// first of them is due: there are no ticks, and an idle Scheduler with a million
// timers uses no CPU. Timers that are due go to an executor (package executor), by
// default a pool that grows when callbacks block.
//
// # Guarantees
//
//  1. Never early: at any tick, level and load.
//  2. Late by at most one tick plus the time to wake up, plus its slack and a wait
//     for others that are due. By default there is no slack ([WithSlack]). On an idle
//     Linux machine waking up takes one to two tenths of a millisecond while wake-ups
//     are rare: up to 64 in a row, and no more than 500 a second on average in the
//     whole process.
//     Otherwise it takes what package time's timers take: up to a millisecond while
//     procs are idle, and on busy procs until one of them passes through Go's
//     scheduler: while goroutines compute, 10 ms in the middle and 20 to 37 ms at p99.
//     A due timer waits for at most 256 timers of its shard that only move down a
//     level, and a few milliseconds for callbacks of earlier timers, whether they block
//     or compute: 16 ms at most in the benchmarks, and so does a goroutine that waits
//     for a context. Before the procs are known to be busy a ring may lose its place at
//     the front of a run queue, and a second comes 20 ms later, if the process
//     had more than 16 goroutines when it was set. A timer that moves down a level together with very
//     many others may wait for them, 0.1 to 0.4 µs for each.
//  3. A timer fires at most once for each start. If Stop returned true the callback
//     never runs, even if Stop raced with expiry.
//  4. Nothing is lost: started = fired + stopped + pending + handed back by Close +
//     fallen back to package time. (Timers fall back beyond WithMaxPending, and if
//     their period is too short for the wheel; contexts do at Close, too.) The callback
//     of every timer that fired runs, waits in the executor, or was refused by it and is
//     counted. (That of a [Group] that was stopped meanwhile does nothing when it runs.)
//  5. A stale Handle never touches another timer, even after its memory was reused.
//  6. Every method may be called from any goroutine and from inside callbacks. (From
//     there Shutdown and a Group's StopWait wait for the callback that calls them,
//     until their context ends. Init, and Record of a Histogram of one's own, may not
//     be called by several goroutines at a time.)
//  7. A callback that panics or hangs harms no other timer. (On an [executor.Inline],
//     which has to be asked for, one that hangs stops its Scheduler.)
//  8. A timer that fired or was stopped keeps nothing alive, and memory falls after a
//     peak: ten seconds after its last start a Scheduler without timers takes a few
//     kB, unless it was given a clock. A Timer that was reset before it was stopped
//     leaves its place behind, about 65 bytes, until the moment for which it was
//     placed. Once more than 256 such places are a quarter of a shard, they go at
//     once. The Timer that was stopped last on a shard stays alive until another is
//     stopped there, or fires; on one that has had more than a thousand of them
//     up to 17 such Timers do, and a kilobyte stays.
//  9. No wake-ups without work: an idle Scheduler with a million timers uses no CPU.
//     The poller sleeps until a timer is due. It may wake up once for a bucket whose
//     first timers were stopped or moved later, so also for the place of a Timer that
//     was reset before, and once for a bucket of 256 timers or more, to move them down
//     a level in time. A Job of Repeat wakes it once a minute, to look at the wall clock.
//     After the last timer is gone, a timer of package time fires once or twice, to give
//     memory back.
//  10. Changes of the wall clock do not affect timers. (Jobs of Repeat follow it.)
//  11. After Close no goroutine and no file descriptor is left once the callbacks
//     have ended; Shutdown waits for that. Nor is there any while nothing is pending,
//     from 20 ms after the last timer on. (A goroutine that is in its last instructions
//     may still be counted for a moment.)
//  12. All of this works under a virtual clock (package timertest) and inside a
//     testing/synctest bubble.
//
// # Order
//
// Timers of one shard fire in the order of their ticks, with one exception: a timer
// that falls due while it waits to move down a level, together with very many others,
// does not hold up those of later ticks. Within a tick, timers of one shard that took
// the same way through the wheel fire first in, first out; otherwise no order is
// promised. Callbacks run concurrently. Under a virtual clock the order of ticks has
// no exception, and callbacks run one by one in that order.
//
// Timers of one tick fire together, up to 256 of a shard, before the first of their
// callbacks runs: one of these callbacks cannot stop another, and its Stop reports
// false.
//
// # Concurrency
//
// Several goroutines may use everything here at a time, also from inside callbacks, with
// the exceptions of guarantee 6; no lock is held while user code runs. What a goroutine
// did before it started or reset a timer happens before the timer's callback runs. A
// Stop that reports false does not wait for the callback, which may be running or may
// still have to run.
//
// # Complexity
//
// Starting, stopping and resetting a timer take O(1); so does firing it, plus one
// move for each level that it comes down. A pending timer takes about 32 bytes and a
// Scheduler 5 kB. Each shard in use takes another 33 kB, or twice that if its timers
// are on more than three levels: milliseconds, seconds, minutes and hours away. Shards
// without timers give it back 5 to 10 s after their last start.
//
// # When not to use it
//
// Up to a few thousand timers package time is simpler and as good. Where a timer must
// survive the process, or several processes share it, use package durable, with its
// store on Redis for example.
package timer
