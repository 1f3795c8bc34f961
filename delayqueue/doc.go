// Package delayqueue provides a queue whose elements come out when their deadlines have
// passed, the earliest first. java.util.concurrent.DelayQueue does the same for Java.
//
// # Usage
//
// A consumer with a goroutine of its own blocks in [Queue.Take]:
//
//	q := delayqueue.New[string]()
//	q.OfferAfter("retry order 17", 30*time.Second)
//	job, err := q.Take(ctx) // half a minute later
//
// An event loop does not block in the queue. It takes due elements with [Queue.Poll] and
// sleeps until the deadline that [Queue.Peek] returns. It must wake earlier if the second
// result of [Queue.Offer] is true. An event loop that counts time in nanoseconds uses
// [Queue.OfferAt] and [Queue.PollAt], which do not read the clock.
//
// [Queue.Offer] returns a [Ticket]. [Queue.Remove] removes the ticket's element.
//
// # Guarantees
//
//   - Take and Poll never return an element before its deadline, by the queue's clock.
//   - Elements come out in the order of their deadlines. Elements with equal deadlines
//     come out in the order in which they were offered.
//   - Every element is handed out exactly once, by one of Take, Poll, Remove and Drain.
//     An element is not lost if it falls due while a taker's context ends: that taker
//     or a later one gets it.
//   - A ticket removes its own element and no other. After an element has been taken,
//     its ticket is invalid for ever.
//   - The queue keeps no reference to an element that has been taken or removed, and
//     its memory shrinks after a peak.
//   - Setting the wall clock does not move deadlines that came from [time.Now]. A
//     deadline without a monotonic reading becomes a delay when it is offered, as in
//     [time.Until]. So two equal deadlines of this sort may come out in either order.
//   - A deadline that has passed is due at once, however long ago it was. A deadline
//     more than 292 years after the queue's epoch never falls due.
//
// # Concurrency
//
// Any goroutine may call any method, and may hold its own locks. The queue has no
// goroutine of its own. What a goroutine did before it offered an element happens before
// another goroutine takes that element. Which of several takers gets an element is not
// specified. A queue that is used inside a testing/synctest bubble must be made there.
//
// # Complexity
//
// Offering or taking an element is O(log n) in the number of elements, and allocates
// nothing while that number is steady. Peek and Len are O(1). Drain is O(n log n).
//
// Removing any element except the first is O(1): its key stays in the heap, as a dead
// key. Removing the first element pops its key and all dead keys behind it, in O(log n)
// each. When more than half of the keys are dead, the heap is rebuilt in O(n), under the
// lock.
//
// An element costs its own size and 40 to 70 bytes. The heap is the generic one of
// github.com/emirpasic/gods/v2.
//
// # When not to use it
//
// For timeouts that are mostly stopped before they fire, use package timer: its wheels
// start and stop a timer in O(1). For a handful of timers [time.AfterFunc] is enough. For
// a queue without delays, use a channel.
package delayqueue
