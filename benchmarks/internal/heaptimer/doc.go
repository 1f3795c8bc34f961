// Package heaptimer is a timer on a binary heap with one goroutine, as
// java.util.Timer is one with one thread: the baseline that O(1) timers are to
// beat. It is written as well as that shape allows.
//
//   - The heap is indexed: stopping and resetting find their timer at once and
//     take O(log n) comparisons. The deadlines lie in the heap itself, so that a
//     comparison touches nothing else.
//   - Entries are reused, so that starting allocates nothing in the long run. A
//     generation tells a handle whether its entry is still its own.
//   - One mutex guards all of it. Callbacks run on the one goroutine, outside
//     the mutex; one that blocks delays the others.
package heaptimer
