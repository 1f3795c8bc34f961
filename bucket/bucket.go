package bucket

// A Bucket names a first-in, first-out list of entries in an arena, and keeps
// one number for its owner: the expiration.
//
// It is a ring through a sentinel slot, so that an entry can be unlinked
// without knowing which bucket it is in, and so that a whole bucket moves in
// O(1).
type Bucket Index

// NewBuckets makes k empty buckets, k > 0, with consecutive numbers, and
// returns the first. Buckets live as long as the arena.
func (a *slab) NewBuckets(k int) Bucket {
	if int(a.sentinelEnd-a.sentinel) < k {
		chunks := (k + ChunkSize - 1) / ChunkSize
		a.sentinel = Index(a.appendChunks(chunks)) << chunkShift
		a.sentinelEnd = a.sentinel + Index(chunks*ChunkSize)
	}
	first := a.sentinel
	a.sentinel += Index(k)
	for i := first; i < a.sentinel; i++ {
		s := a.at(i)
		s.next, s.prev = i, i
	}
	return Bucket(first)
}

// PushBack links entry i, which must be in no bucket, at the end of b.
func (a *slab) PushBack(b Bucket, i Index) {
	head := a.at(Index(b))
	last := head.prev
	e := a.at(i)
	e.next, e.prev = Index(b), last
	a.at(last).next = i
	head.prev = i
}

// Unlink takes entry i out of the bucket it is in. The entry stays live.
func (a *slab) Unlink(i Index) {
	e := a.at(i)
	a.at(e.prev).next = e.next
	a.at(e.next).prev = e.prev
}

// Front returns the first entry of b, or false if b is empty.
func (a *slab) Front(b Bucket) (Index, bool) {
	i := a.at(Index(b)).next
	return i, i != Index(b)
}

// Next returns the entry behind i in b, or false if i is the last.
func (a *slab) Next(b Bucket, i Index) (Index, bool) {
	i = a.at(i).next
	return i, i != Index(b)
}

// Empty reports whether b has no entries.
func (a *slab) Empty(b Bucket) bool { return a.at(Index(b)).next == Index(b) }

// MoveAll moves all entries of src, in their order, to the end of dst, which is
// another bucket.
func (a *slab) MoveAll(dst, src Bucket) {
	s := a.at(Index(src))
	if s.next == Index(src) {
		return
	}
	d := a.at(Index(dst))
	a.at(d.prev).next = s.next
	a.at(s.next).prev = d.prev
	a.at(s.prev).next = Index(dst)
	d.prev = s.prev
	s.next, s.prev = Index(src), Index(src)
}

// Expiration returns b's expiration, zero until it is set.
func (a *slab) Expiration(b Bucket) int64 { return a.at(Index(b)).deadline }

// SetExpiration sets b's expiration.
func (a *slab) SetExpiration(b Bucket, expiration int64) { a.at(Index(b)).deadline = expiration }
