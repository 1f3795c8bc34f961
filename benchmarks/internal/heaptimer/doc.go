// Package heaptimer implements timers with a binary heap and one goroutine, like
// java.util.Timer. The benchmarks compare wheels with it.
//
//   - Stop and Reset take O(log n): each timer knows its index in the heap.
//   - The heap holds the deadlines themselves, so a comparison reads no other memory.
//   - One mutex guards everything.
//   - One goroutine runs all callbacks, without holding the mutex. A callback that blocks delays
//     the others.
package heaptimer
