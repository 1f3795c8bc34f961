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
// For example, splitting chain 2 moves the entries whose hash & 7 is 6 to a new chain
// 6. Merging moves them back.
type table[K comparable, V any] struct {
	hashSeed   maphash.Seed
	blocks     []*[chainsPerBlock]*entry[K, V]
	chainCount uint64
	entryCount uint64
}

const chainsPerBlock = 16

func (t *table[K, V]) chain(i uint64) **entry[K, V] {
	return &t.blocks[i/chainsPerBlock][i%chainsPerBlock]
}

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
		t.splitChain()
	}
	at := t.chainOf(hash)
	e.next, *at = *at, e
}

// splitChain adds one chain.
func (t *table[K, V]) splitChain() {
	i := t.chainCount
	if i%chainsPerBlock == 0 {
		t.blocks = append(t.blocks, new([chainsPerBlock]*entry[K, V]))
	}
	t.chainCount++
	if i == 0 {
		return
	}
	highBit := i &^ parentChain(i)
	to, at := t.chain(i), t.chain(parentChain(i))
	for *at != nil {
		e := *at
		if maphash.Comparable(t.hashSeed, e.key)&highBit == 0 {
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
		t.mergeChain()
	}
}

// mergeChain undoes the last splitChain.
func (t *table[K, V]) mergeChain() {
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
	case i%chainsPerBlock == 0:
		lastIndex := len(t.blocks) - 1
		t.blocks[lastIndex] = nil
		t.blocks = t.blocks[:lastIndex]
	}
}

// entries returns an iterator over the entries, in no particular order. The loop's body
// must not change the table.
func (t *table[K, V]) entries() iter.Seq[*entry[K, V]] {
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
