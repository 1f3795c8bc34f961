// Package heaptimer implements timers with a binary heap and one goroutine, like
// java.util.Timer with its one thread. It is the baseline for O(1) timers, and as good
// as this design allows.
//
//   - The heap is indexed: stopping and resetting find their timer at once and take O(log n)
//     comparisons. The deadlines are in the heap itself, so that a comparison reads no other
//     memory.
//   - Entries are reused, so that starting a timer allocates nothing in the long run. A
//     generation tells a handle whether its entry is still its own.
//   - One mutex guards everything. Callbacks run on the goroutine, outside the mutex; a
//     callback that blocks delays the others.
package heaptimer
