// Package bucket keeps pending entries in an arena, and links them by index into
// first-in, first-out buckets.
//
// An entry is a slot in an array, not an object of its own. Its deadline, links and
// generation lie in the same memory as its payload, but behind the last pointer, where
// the garbage collector does not scan. Making and freeing an entry allocates nothing,
// unless the arena needs a new chunk.
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
//   - A [Ref] finds its entry until the entry is freed, and never finds another, even
//     after the slot is used again, or its chunk was given back and remade.
//   - Freeing an entry clears its payload: the arena keeps no reference to a payload that
//     the caller has taken out.
//   - A chunk of [ChunkSize] slots without entries is given back to the garbage collector.
//     The arena keeps one empty chunk as a spare, and all chunks that contain buckets.
//     [Arena.Release] gives back everything.
//   - A bucket returns entries in the order in which they were pushed.
//
// # Concurrency
//
// None: an arena and its buckets belong to one goroutine at a time. The package has no
// locks, and no notion of time: a deadline is just an int64 that the arena stores.
//
// # Complexity
//
// Every operation on an entry is O(1), and so is moving a whole bucket onto another.
// [Arena.NewBuckets] and [Arena.Release] are O(chunks). Giving a chunk back is
// O(ChunkSize), after ChunkSize frees. An entry takes 24 bytes and the size of its
// payload, and so does a bucket. The arena allocates memory for [ChunkSize] of them at a
// time.
//
// # When not to use it
//
// For a queue that is only pushed and popped, a slice or a ring is smaller and faster.
// The arena pays off where entries leave from the middle, by reference.
package bucket
