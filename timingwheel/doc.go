// Package timingwheel is a hierarchical timing wheel as a plain data structure: it stores
// values with deadlines and hands out those that are due.
//
// The package has no clock, no goroutine and no lock. The caller passes in the time, as a
// number in any unit.
//
// # Usage
//
//	w, err := timingwheel.New[string](1, 4, 0) // tick 1, 4 slots a level, time 0
//	id, ok := w.Add(7, "seven")                // ok is false if 7 is due already
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
// An owner of several wheels can keep one queue for the buckets of all wheels, as package
// timer's Scheduler does: see [WithQueue].
//
// # Guarantees
//
//   - Never early: an entry is not handed out before its deadline, rounded up to a tick.
//     It is less than one tick late if the wheel is advanced whenever [Wheel.Next] says
//     so.
//   - Ticks come in order. Within one tick, two entries that passed through the same
//     levels come out in the order in which they were added or moved.
//   - An entry with slack ([Wheel.AddWithin]) is handed out within its slack, at a tick
//     that it shares with many other entries.
//   - Next is never later than the first entry that is due.
//   - A deadline of math.MaxInt64 is valid. Arithmetic saturates and never wraps.
//   - An [ID] finds its entry until the entry is handed out or removed, and never finds
//     another.
//   - The wheel keeps no reference to a value that it handed out or removed, and its
//     memory shrinks after a peak.
//
// # How it works
//
// Level 0 has one slot a tick. Each slot of level n+1 is as long as all of level n. A
// deadline goes to the lowest level where its slot is less than a full turn after the
// clock's slot. A slot expires when the first of its entries is due. Its other entries
// then move to a lower level, and cost no wake-up of their own. A slot that gets 256
// entries expires before it begins instead, because moving that many takes a while. Its
// entries that are still too far away for the lower level go back into the slot until it
// begins.
//
// An example, with tick 1 and four slots a level, at time 0. [t] is the slot that begins
// at time t.
//
//	level 0   [1] [2] [3]            one tick each
//	level 1   [4] [8] [12]           four ticks each: made when 4..15 is first added
//	level 2   [16] [32] [48]         sixteen ticks each: made when 16..63 is first added
//
//	add 2     level 0, slot 2: 2-0 < 4
//	add 7     level 1, slot 4: 7/4 - 0/4 = 1 < 4, but 7-0 is not < 4
//	add 21    level 2, slot 16
//	add 23    level 2, slot 16
//
//	tick 1    nothing; the next expiry is 2
//	tick 2    2 is due
//	tick 3    nothing; the next expiry is 7
//	tick 7    slot 4 of level 1 expires: 7 is due
//	tick 16   nothing; the next expiry is 21
//	tick 21   slot 16 of level 2 expires: 21 is due, 23 moves down to level 0, slot 23
//	tick 23   23 is due
//
// The design is scheme 7 of George Varghese and Tony Lauck, "Hashed and Hierarchical
// Timing Wheels" (1987), in Apache Kafka's form: a level is made when it is first needed,
// and time advances from one expiry to the next rather than tick by tick.
//
// # Concurrency
//
// None: a wheel belongs to one goroutine at a time, or to a lock.
//
// # Complexity
//
// Add, Remove and Move are O(1). An entry moves down at most once a level. If 256 entries or
// more share its slot, it may first go back into the slot, once. Advance is
// O(entries handed out or moved down), however much time has passed. For each slot that
// expires, it also scans one bit for each slot of a level, 64 at a time.
//
// # When not to use it
//
// For a handful of timers a heap is smaller. For timers with callbacks on the real clock
// use package timer, which is this wheel with a lock, a clock and an executor around it.
package timingwheel
