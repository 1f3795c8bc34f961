// Package bucket is the memory of timers: it keeps entries in an arena, and links them
// into first-in, first-out buckets.
//
// An entry is a slot in a large array, not an object of its own. So making and freeing an
// entry allocates nothing, unless the arena needs another chunk of slots. The garbage
// collector scans only the payloads.
//
// # Usage
//
//	var a bucket.Arena[string]
//	b := a.NewBuckets(1)
//	e := a.New(deadline, "payload")
//	a.PushBack(b, e)
//	ref := a.Ref(e)           // safe to keep
//	...
//	if e, ok := a.Find(ref); ok {
//		a.Unlink(e)
//		payload := a.Free(e)
//	}
//
// # Guarantees
//
//   - A [Ref] finds its entry until the entry is freed, and never finds another entry.
//   - The arena keeps no reference to the payload of a freed entry.
//   - A chunk ([ChunkSize] slots) without entries is given back to the garbage collector.
//     The arena keeps one empty chunk as a spare, and all chunks that contain buckets.
//     [Arena.Release] gives back everything.
//   - A bucket returns entries in the order in which they were pushed.
//
// # Concurrency
//
// None: an arena and its buckets belong to one goroutine at a time.
//
// # Complexity
//
// Operations on an entry, and moving a whole bucket onto another, are O(1). But
// freeing the last entry of a chunk is O(ChunkSize). [Arena.NewBuckets] and
// [Arena.Release] are O(chunks). An entry takes 24 bytes plus its payload, and a bucket
// takes as much.
//
// # When not to use it
//
// For a queue that is only pushed and popped, a slice or a ring is smaller and faster.
// Use an arena if entries leave from the middle, by reference.
package bucket
