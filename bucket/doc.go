// Package bucket keeps pending entries in an arena and threads first-in,
// first-out buckets through it by index.
//
// An entry is a slot of a chunked slab, not an object of its own. Its deadline, its
// two links and its generation lie in arrays behind that of the payloads, in the
// same piece of memory, where the garbage collector does not look for pointers.
// Making and freeing an entry allocates nothing once a chunk is there.
//
// # Usage
//
//	var a bucket.Arena[string]
//	b := a.NewBuckets(1)
//	e := a.New(deadline, "payload")
//	a.PushBack(b, e)
//	ref := a.Ref(e)           // what a caller may keep
//	...
//	if e, ok := a.Find(ref); ok {
//		a.Unlink(e)
//		payload := a.Free(e)
//	}
//
// # Guarantees
//
//   - A [Ref] finds its entry until the entry is freed and nothing ever after, even
//     when its slot is used again, or its chunk was given back and remade.
//   - Freeing an entry clears its payload: the arena keeps nothing alive that the
//     caller has taken out.
//   - A chunk of [ChunkSize] slots in which no entry is left is given back to
//     the garbage collector; one empty chunk is kept as a spare, and those that hold
//     buckets stay. [Arena.Release] gives back all.
//   - A bucket hands entries back in the order in which they were pushed.
//
// # Concurrency
//
// None: an arena and its buckets belong to one goroutine at a time. There are
// no locks in this package and no notion of time: a deadline is just an int64
// that the arena keeps.
//
// # Complexity
//
// Every operation on an entry is O(1), and so is moving a whole bucket onto another.
// [Arena.NewBuckets] and [Arena.Release] are O(chunks). Giving a chunk back costs
// O(ChunkSize), paid for by the ChunkSize frees before it.
// An entry takes 24 bytes and the size of its payload, and so does a bucket. Memory
// for both is made [ChunkSize] at a time.
//
// # When not to use it
//
// For a queue that is only pushed and popped, a slice or a ring is smaller and
// faster. The arena pays off where entries leave from the middle, by handle.
package bucket
