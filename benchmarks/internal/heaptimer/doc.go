// Package heaptimer implements timers with a binary heap and one goroutine, like
// java.util.Timer. The benchmarks compare wheels with it.
//
//   - Each timer knows its index in the heap, so Stop and Reset take O(log n).
//   - The heap holds the deadlines themselves, so a comparison reads no other memory.
//   - Entries are reused. An entry's generation tells a handle whether the entry has been
//     reused for another timer.
//   - One mutex guards everything.
//   - All callbacks run on the one goroutine, without the mutex. A callback that blocks
//     delays the others.
package heaptimer
