package keyed

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// A table finds entries by key. It grows and shrinks by one chain at a time (linear
// hashing, Litwin 1980). So, unlike with a Go map, no call takes long, and memory
// shrinks.
//
// For example, a split of chain 2 moves the entries whose hash & 7 is 6 to chain 6,
// which is new. A merge moves them back.
type table[K comparable, V any] struct {
	seed       maphash.Seed
	blocks     []*[blockSize]*entry[K, V]
	chainCount uint64
	entryCount uint64
}

const blockSize = 16

func (t *table[K, V]) chain(i uint64) **entry[K, V] { return &t.blocks[i/blockSize][i%blockSize] }

// chainOf returns the chain of a hash. The table must have at least one chain.
func (t *table[K, V]) chainOf(hash uint64) **entry[K, V] {
	i := hash & (1<<bits.Len64(t.chainCount-1) - 1)
	if i >= t.chainCount {
		i = parentChain(i)
	}
	return t.chain(i)
}

// parentChain returns the chain that is split to make chain i: i without its highest bit.
func parentChain(i uint64) uint64 { return i &^ (1 << (bits.Len64(i) - 1)) }

// find returns the entry of a key, or nil.
func (t *table[K, V]) find(hash uint64, key K) *entry[K, V] {
	if t.entryCount == 0 {
		return nil
	}
	e := *t.chainOf(hash)
	for e != nil && e.key != key {
		e = e.next
	}
	return e
}

// add adds an entry. The table must not contain its key.
func (t *table[K, V]) add(hash uint64, e *entry[K, V]) {
	if t.entryCount++; 2*t.entryCount > 3*t.chainCount {
		t.split()
	}
	at := t.chainOf(hash)
	e.next, *at = *at, e
}

// split adds one chain.
func (t *table[K, V]) split() {
	i := t.chainCount
	if i%blockSize == 0 {
		t.blocks = append(t.blocks, new([blockSize]*entry[K, V]))
	}
	t.chainCount++
	if i == 0 {
		return
	}
	highBit := i &^ parentChain(i)
	to, at := t.chain(i), t.chain(parentChain(i))
	for *at != nil {
		e := *at
		if maphash.Comparable(t.seed, e.key)&highBit == 0 {
			at = &e.next
			continue
		}
		*at = e.next
		e.next, *to = *to, e
	}
}

// remove removes entry e, if the table contains it.
func (t *table[K, V]) remove(hash uint64, e *entry[K, V]) {
	if t.entryCount == 0 {
		return
	}
	at := t.chainOf(hash)
	for *at != e {
		if *at == nil {
			return
		}
		at = &(*at).next
	}
	*at, e.next = e.next, nil
	for t.entryCount--; 2*t.entryCount < t.chainCount; {
		t.merge()
	}
}

// merge undoes the last split.
func (t *table[K, V]) merge() {
	t.chainCount--
	i := t.chainCount
	if i > 0 {
		at := t.chain(parentChain(i))
		for *at != nil {
			at = &(*at).next
		}
		*at, *t.chain(i) = *t.chain(i), nil
	}
	switch {
	case i == 0:
		t.blocks = nil
	case i%blockSize == 0:
		lastBlock := len(t.blocks) - 1
		t.blocks[lastBlock] = nil
		t.blocks = t.blocks[:lastBlock]
	}
}

// all returns an iterator over the entries, in no particular order. The loop's body must
// not change the table.
func (t *table[K, V]) all() iter.Seq[*entry[K, V]] {
	return func(yield func(*entry[K, V]) bool) {
		for i := range t.chainCount {
			for e := *t.chain(i); e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}
