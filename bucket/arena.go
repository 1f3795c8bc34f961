package bucket

import (
	"fmt"

	"github.com/tickless/tickless/internal/slab"
)

// ChunkSize is the number of slots in a chunk, the unit in which memory is taken and
// given back.
const ChunkSize = slab.ChunkSize

// An Index names a slot of an arena. Zero names none.
type Index uint32

// A Bucket names a first-in, first-out list of entries in an arena.
//
// It is a ring through a sentinel slot, so that an entry can be unlinked without knowing
// which bucket it is in, and so that a whole bucket moves in O(1).
type Bucket uint32

// A Ref names one life of one slot: what a caller keeps to come back to an entry. It is
// comparable and 16 bytes. The zero Ref names nothing.
type Ref struct{ r slab.Ref }

// An Arena holds entries, each with a deadline and a payload of type T, and the buckets
// that are threaded through them. The deadline is the caller's to use: the arena only
// keeps it.
//
// The zero Arena is empty and ready to use. An Arena must not be copied after its first
// use. An Index or a Bucket that the arena has not made, or whose entry was freed, must
// not be passed to it.
type Arena[T any] struct{ a slab.Arena[T] }

// New makes an entry that is in no bucket.
func (a *Arena[T]) New(deadline int64, v T) Index {
	i := a.a.New(deadline, v, 0)
	a.a.Isolate(i)
	return Index(i)
}

// Free ends the life of entry i, which must be live and in no bucket, and returns its
// payload. The arena keeps no reference to the payload.
func (a *Arena[T]) Free(i Index) T { return a.a.Free(slab.Index(i)) }

// Value returns the payload of the live entry i.
func (a *Arena[T]) Value(i Index) T { return a.a.Value(slab.Index(i)) }

// Deadline returns entry i's deadline.
func (a *Arena[T]) Deadline(i Index) int64 { return a.a.Deadline(slab.Index(i)) }

// SetDeadline sets entry i's deadline.
func (a *Arena[T]) SetDeadline(i Index, deadline int64) { a.a.SetDeadline(slab.Index(i), deadline) }

// Ref returns the name of live entry i's present life.
func (a *Arena[T]) Ref(i Index) Ref { return Ref{a.a.Ref(slab.Index(i))} }

// Find returns the entry that r names. It reports false if that entry was freed, or if r
// is zero.
func (a *Arena[T]) Find(r Ref) (Index, bool) {
	i, ok := a.a.Find(r.r)
	return Index(i), ok
}

// Remove takes the entry that r names out of the bucket that it is in, if it is in one,
// and frees it. It reports false if that entry was freed before, or if r is zero. It does
// what Find, Unlink and Free do, but looks the slot up only once.
func (a *Arena[T]) Remove(r Ref) (v T, ok bool) { return a.a.Remove(r.r) }

// Len returns the number of live entries.
func (a *Arena[T]) Len() int { return a.a.Len() }

// Release gives back all memory. All Refs stay stale, and all buckets are gone: nobody
// may use them any more. It reports false, and does nothing, if there are entries, or if
// a slot has used up half of its generations: the next ones would begin with what is
// left. O(chunks held).
func (a *Arena[T]) Release() bool { return a.a.Release() }

// NewBuckets makes k empty buckets with consecutive numbers, and returns the first.
// Buckets live as long as the arena, or until Release. NewBuckets panics if k is not
// positive.
func (a *Arena[T]) NewBuckets(k int) Bucket {
	if k <= 0 {
		panic(fmt.Sprintf("bucket: NewBuckets makes one bucket at least, got %d", k))
	}
	return Bucket(a.a.NewBuckets(k))
}

// PushBack links entry i, which must be in no bucket, at the end of b.
func (a *Arena[T]) PushBack(b Bucket, i Index) { a.a.PushBack(slab.Bucket(b), slab.Index(i)) }

// Unlink takes entry i out of the bucket it is in, if it is in one. The entry stays live.
func (a *Arena[T]) Unlink(i Index) {
	a.a.Unlink(slab.Index(i))
	a.a.Isolate(slab.Index(i))
}

// MoveAll moves all entries of src, in their order, to the end of dst, which is another
// bucket.
func (a *Arena[T]) MoveAll(dst, src Bucket) { a.a.MoveAll(slab.Bucket(dst), slab.Bucket(src)) }

// Empty reports whether b has no entries.
func (a *Arena[T]) Empty(b Bucket) bool { return a.a.Empty(slab.Bucket(b)) }

// Front returns the first entry of b, or false if b is empty.
func (a *Arena[T]) Front(b Bucket) (Index, bool) {
	i, ok := a.a.Front(slab.Bucket(b))
	return Index(i), ok
}

// Next returns the entry behind i in b, or false if i is the last.
func (a *Arena[T]) Next(b Bucket, i Index) (Index, bool) {
	n, ok := a.a.Next(slab.Bucket(b), slab.Index(i))
	return Index(n), ok
}
