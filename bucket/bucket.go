package bucket

import "fmt"

// A Bucket is a first-in, first-out list of entries of an arena. Its owner can store two
// numbers with it: an expiration and a load.
//
// The list is a ring. A slot of the bucket's own, the sentinel, joins its ends.
type Bucket Index

// NewBuckets makes k empty buckets with consecutive numbers, and returns the first.
// Buckets are valid until Release. NewBuckets panics if k is not positive.
func (a *Arena[T]) NewBuckets(k int) Bucket {
	if k <= 0 {
		panic(fmt.Sprintf("bucket: NewBuckets: the number of buckets must be positive, got %d", k))
	}
	firstSentinel := a.takeFreshSlots(k)
	for i := firstSentinel; i < firstSentinel+Index(k); i++ {
		*a.link(i) = link{i, i}
	}
	return Bucket(firstSentinel)
}

// PushBack appends entry i, which must be in no bucket, to b.
func (a *Arena[T]) PushBack(b Bucket, i Index) {
	a.pushBack(b, i, a.link(i))
}

// pushBack appends entry i to b. l is a.link(i).
func (a *Arena[T]) pushBack(b Bucket, i Index, l *link) {
	sentinel := a.link(Index(b))
	lastEntry := sentinel.prev
	*l = link{Index(b), lastEntry}
	a.link(lastEntry).next = i
	sentinel.prev = i
}

// Move moves entry i, which must be in a bucket, to the end of b, with a new deadline, grain
// and place. It is faster than SetDeadline, SetGrain, Unlink, SetPlace and PushBack.
func (a *Arena[T]) Move(i Index, b Bucket, deadline int64, grain uint, place uint32) {
	m := a.chunkSlots[i>>chunkShift]
	s := &m.headers[i&chunkMask]
	s.deadline = deadline
	s.setGrain(grain)
	s.setPlace(place)
	l := &m.links[i&chunkMask]
	a.unlink(l)
	a.pushBack(b, i, l)
}

// Unlink takes entry i out of its bucket, if it is in one. The entry stays live.
func (a *Arena[T]) Unlink(i Index) {
	l := a.link(i)
	a.unlink(l)
	*l = link{i, i}
}

func (a *Arena[T]) unlink(l *link) {
	a.link(l.prev).next = l.next
	a.link(l.next).prev = l.prev
}

// Front returns the first entry of b. It reports false if b is empty.
func (a *Arena[T]) Front(b Bucket) (Index, bool) {
	i := a.link(Index(b)).next
	return i, i != Index(b)
}

// Next returns the entry after i in b. It reports false if i is the last.
func (a *Arena[T]) Next(b Bucket, i Index) (Index, bool) {
	i = a.link(i).next
	return i, i != Index(b)
}

// Empty reports whether b has no entries.
func (a *Arena[T]) Empty(b Bucket) bool { return a.link(Index(b)).next == Index(b) }

// MoveAll moves all entries of src, in order, to the end of dst. src and dst must be
// different buckets.
func (a *Arena[T]) MoveAll(dst, src Bucket) {
	s := a.link(Index(src))
	if s.next == Index(src) {
		return
	}
	d := a.link(Index(dst))
	a.link(d.prev).next = s.next
	a.link(s.next).prev = d.prev
	a.link(s.prev).next = Index(dst)
	d.prev = s.prev
	s.next, s.prev = Index(src), Index(src)
}

// Expiration returns b's expiration. The expiration is zero until it is set.
func (a *Arena[T]) Expiration(b Bucket) int64 { return a.header(Index(b)).deadline }

// SetExpiration sets b's expiration.
func (a *Arena[T]) SetExpiration(b Bucket, expiration int64) {
	a.header(Index(b)).deadline = expiration
}

// Load returns b's load. The load is zero until it is set.
func (a *Arena[T]) Load(b Bucket) uint32 { return a.header(Index(b)).place() }

// SetLoad sets b's load, at most [MaxPlace].
func (a *Arena[T]) SetLoad(b Bucket, load uint32) { a.header(Index(b)).setPlace(load) }
