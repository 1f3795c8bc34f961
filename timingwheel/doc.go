// Package timingwheel is a hierarchical timing wheel as a plain data
// structure: it keeps deadlines and hands out what is due.
//
// There is no clock, no goroutine and no lock inside. The time is a number that
// the caller passes in, in any unit (package timer uses nanoseconds), which
// makes the wheel usable alone inside an event loop.
//
// # Usage
//
//	w, err := timingwheel.New[string](1, 4, 0) // tick 1, 4 slots a level, time 0
//	id, ok := w.Add(7, "seven")                // false: 7 is due already
//	moved := w.Move(id, 9)
//	v, ok := w.Remove(id)
//	next, ok := w.Next()                       // nothing is due before next
//	var due [64]timingwheel.Expired[string]
//	for more := true; more; {
//		var n int
//		n, more = w.Advance(now, due[:])
//		handle(due[:n])
//	}
//
// An owner of several wheels keeps one queue for the buckets of all of them, as package
// timer's Scheduler does: [WithQueue] offers buckets to it, [Wheel.Expire] takes one whose
// time has come, [Wheel.Drain] works through what it holds in pieces, and [Wheel.Discard]
// takes back one that has become empty.
//
// # How it works
//
// Level 0 has one slot a tick. Each slot of level n+1 is as long as the whole of
// level n. A deadline goes to the lowest level whose span, counted from that level's
// own clock, holds it. A slot expires when the first of its entries is due. Its other
// entries are then placed again, lower down. So an entry that has to go down costs no
// wake-up of its own. Only a slot of 256 entries or more expires when it begins,
// since moving that many takes a while.
//
// A worked example, with tick 1 and four slots a level, at time 0. A slot is
// written with the time at which it begins.
//
//	level 0   [1] [2] [3]            one tick each
//	level 1   [4] [8] [12]           four ticks each: made when 4..15 is first added
//	level 2   [16] [32] [48]         sixteen ticks each: made when 16..63 is first added
//
//	add 2     level 0, slot 2: 2-0 < 4
//	add 7     level 1, slot 4: 7/4 - 0/4 = 1 < 4, but 7-0 is not < 4
//	add 21    level 2, slot 16
//	add 23    likewise
//
//	tick 1    nothing; the next expiry is 2
//	tick 2    2 is due
//	tick 3    nothing; the next expiry is 7
//	tick 7    slot 4 of level 1 expires: 7 is due
//	tick 16   nothing; the next expiry is 21
//	tick 21   slot 16 of level 2 expires: 21 is due, 23 goes down to level 0, slot 23
//	tick 23   23 is due
//
// The scheme is scheme 7 of George Varghese and Tony Lauck, "Hashed and Hierarchical
// Timing Wheels" (1987), in the form that Apache Kafka gave it: levels are made when
// they are first needed, and only slots that hold something are ever visited, so that
// time advances from one expiry to the next rather than tick by tick.
//
// # Guarantees
//
//   - Never early: deadlines are rounded up to a tick, and nothing is handed out
//     before the tick it was rounded to. Lateness against the time passed in is
//     less than one tick, if the wheel is advanced whenever [Wheel.Next] says so.
//   - Ticks come in order; within one tick, entries that took the same way down
//     come first in, first out.
//   - An entry with slack ([Wheel.AddWithin]) is handed out at the tick in its window
//     that most other windows share, so it is never early either.
//   - Next is never later than the first entry that is due.
//   - A deadline of math.MaxInt64 is legal. Arithmetic saturates and never wraps.
//   - An [ID] finds its entry until that was handed out or removed, and nothing
//     after.
//   - The wheel keeps no reference to what it handed out or removed, and memory falls
//     after a peak.
//
// # Concurrency
//
// None: a wheel belongs to one goroutine at a time, or to a lock.
//
// # Complexity
//
// Add, Remove and Move are O(1). An entry goes down at most once a level.
// Advance is O(entries handed out or moved down), however long the time between, and
// looks at one bit for each slot of a level, 64 at a time, after a slot has expired.
//
// # When not to use it
//
// For a handful of timers a heap is smaller. For timers with callbacks on the
// real clock use package timer, which is this wheel with a lock, a clock and an
// executor around it.
package timingwheel
