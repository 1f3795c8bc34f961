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
// An event loop calls [Queue.Poll], which does not block, and sleeps until the deadline
// that [Queue.Peek] returns. It must wake earlier if the second result of [Queue.Offer]
// is true.
//
// [Queue.Offer] returns a [Ticket]. [Queue.Remove] removes the ticket's element.
//
// # Guarantees
//
//   - Take and Poll never return an element before its deadline, by the queue's clock.
//   - Elements come out in the order of their deadlines. Elements with equal deadlines
//     come out in the order in which they were offered.
//   - Every element is handed out exactly once, by Take, Poll, Remove or Drain. It is not
//     lost if a taker's context ends when the element falls due.
//   - A ticket removes its own element and no other, even after that element was taken.
//   - The queue keeps no reference to an element that was taken or removed, and its
//     memory shrinks after a peak.
//   - Setting the wall clock does not move deadlines that came from [time.Now]. A
//     deadline without a monotonic reading becomes a delay when it is offered, as in
//     [time.Until]. Two equal deadlines of this kind may come out in either order.
//   - A deadline that has passed is due immediately. A deadline more than 292 years after
//     the queue's epoch never falls due.
//
// # Concurrency
//
// Any goroutine may call any method, also while it holds its own locks. The queue has no
// goroutine. What a goroutine did before it offered an element happens before another
// goroutine takes that element. A queue that is used inside a testing/synctest bubble
// must be made there.
//
// # Complexity
//
// Offering or taking an element is O(log n) in the number of elements, and allocates
// nothing while that number is steady. Peek and Len are O(1). Drain is O(n log n).
//
// Removing an element takes O(log n) or less, averaged over many calls. A call that
// removes or takes an element may rebuild the heap or shrink the queue, under the lock,
// in O(n) or O(n log n) for the n elements that remain.
//
// An offer and a poll cost about what they cost with container/heap and a mutex, and a
// fifth more beside 100,000 elements: see BenchmarkOfferPoll. An element costs its own size and
// 40 to 70 bytes.
//
// # When not to use it
//
// For timeouts that are mostly stopped before they fire, use package timer: its wheels
// start and stop a timer in O(1). For a handful of timers [time.AfterFunc] is enough. For
// a queue without delays, use a channel.
package delayqueue
