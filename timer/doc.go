// Package timer runs functions later: very many of them, cheaply.
//
// It replaces [time.AfterFunc], [time.Ticker] and [context.WithTimeout] where
// their cost shows: hundreds of thousands of timeouts of which most are
// stopped before they fire, as a server keeps for requests, connections,
// retries, leases and entries of a cache.
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
// What there is besides, each on a Scheduler:
//
//   - [Scheduler.Start] with its [Handle] is the cheapest timer; it allocates
//     nothing. With [Scheduler.StartWithin] it may wait for others, and costs less
//     still.
//   - [Scheduler.AfterFunc], NewTimer, NewTicker, After, Tick and Sleep are those
//     of package time. The functions of the same names in this package use a
//     default Scheduler, but for After and Tick, which are package time's: to
//     migrate, change the import.
//   - [Init] makes a [Timer] that is a field of your own type, and whose function
//     takes that as its argument: for a connection's timeout, which is started and
//     stopped again and again. It allocates nothing and needs no closure.
//   - [Scheduler.WithTimeout] and [Scheduler.WithDeadline] make contexts. They cost
//     no timer until somebody waits for them.
//   - [Deadline] is what a SetReadDeadline method needs: a moment that is set again
//     and again, and a channel that is closed when it has passed.
//   - [Scheduler.Every] and [Scheduler.Schedule] run a function again and again,
//     with a period or by the wall clock.
//   - [NewKeyed] keeps one timer a key: set, move, remove, drain.
//
// # How it works
//
// A Scheduler is a hierarchical timing wheel (package timingwheel) for each of a
// few shards, each under a lock of its own. Only buckets that hold timers wait,
// in a delay queue ordered by expiration (package delayqueue), and one poller
// sleeps until the first of them is due: there are no ticks, and an idle
// Scheduler with a million timers uses no CPU. Timers that are due go to an
// executor (package executor), by default a pool that grows when callbacks
// block.
//
// # Guarantees
//
//  1. Never early: at any tick, level and load.
//  2. Late by at most one tick, and the time to wake up. With slack, which has to be
//     asked for ([WithSlack]), also by that. The time to wake up is a tenth of a
//     millisecond on an idle Linux machine while wake-ups are rare (64 in a row,
//     and on the average no more than 500 a second in the whole process), and what
//     package time's timers take elsewhere and beyond that: up to a millisecond while
//     procs are idle. On busy procs it is no more than theirs: until a proc passes
//     through Go's scheduler, at most every 10 ms while goroutines compute. A timer
//     that is due waits neither for timers that only move down a level, beyond 256 of
//     a shard, nor for callbacks of earlier timers, beyond a few milliseconds, be it
//     that those block or that they compute. A timer that moves down a level in the
//     company of very many may have to wait for these, for 0.1 µs each.
//  3. A timer fires at most once a start. If Stop returned true the callback never
//     runs, also when Stop races with expiry.
//  4. Nothing is lost: started = fired + stopped + pending + handed back by Close +
//     fallen back to package time, beyond WithMaxPending or with a period that is too
//     short for the wheel. Of those that fired, every callback runs, waits in the
//     executor, or was refused by it and is counted.
//  5. A stale Handle never touches another timer, also after its memory was given
//     back and used again.
//  6. Every method may be called from any goroutine and from inside callbacks.
//  7. A callback that panics or hangs harms no other timer. (One that hangs on an
//     [executor.Inline], which has to be asked for, stops its Scheduler.)
//  8. What fired or was stopped is not kept alive, and memory falls after a peak: to
//     a few kB for a Scheduler without timers, ten seconds after the last start, unless
//     a clock was given.
//  9. No wake-ups without work: an idle Scheduler with a million timers uses no CPU.
//     The poller sleeps until a timer is due. One wake-up may come for a bucket whose
//     first timers were stopped or moved later, and one for a bucket that holds 256
//     timers or more, to move them down a level in time. After the last timer has
//     gone, a timer of package time's rings once or twice, to give memory back.
//  10. Changes of the wall clock do not matter.
//  11. After Close no goroutine and no file descriptor is left once the callbacks
//     have ended, for which Shutdown waits. Nor is there one while nothing is
//     pending.
//  12. All of it works under a virtual clock (package timertest) and inside a
//     testing/synctest bubble.
//
// # Order
//
// Timers of one shard fire in the order of their ticks, but for one that is due while
// it waits to be moved down a level together with very many others: it does not hold
// up those of later ticks. Within a tick, timers of one shard that came the same way
// through the wheel fire first in, first out; of others nothing is promised. The
// callbacks then run concurrently. Under a virtual clock the order of ticks holds
// without exception, and callbacks run one by one in that order.
//
// # Concurrency
//
// Everything here may be used from several goroutines at a time, and from inside
// callbacks; no lock is held while user code runs. What a goroutine did before it
// started or reset a timer happens before the timer's callback runs. A Stop that
// reports false does not wait for the callback, which may be running or still to
// run.
//
// # Complexity
//
// Starting, stopping and resetting a timer are O(1); so is firing it, plus one
// move for each level that it comes down. A pending timer takes about 32 bytes,
// a shard that is in use 33 kB besides, or twice that if its timers are more than 25
// minutes apart, and a Scheduler 5 kB. Shards that are not in use give their memory
// back 5 to 10 s after the last start.
//
// # When not to use it
//
// For a few hundred timers package time is simpler and as good. Where a timer
// must survive the process or be shared by several, use package redistimer.
package timer
