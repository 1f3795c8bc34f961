package keyed

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// A table finds entries by key. It uses linear hashing (Litwin, 1980): as the number of
// entries changes, the table splits or merges one chain at a time. So no operation
// takes long, and memory shrinks when entries leave. A Go map promises neither.
//
// For example, chain 6 is made by a split of chain 2: the entries of chain 2 whose hash
// & 7 is 6 move to chain 6. A merge moves all entries of chain 6 back. While chain 6
// does not exist, its entries are in chain 2, which is their hash & 3.
type table[K comparable, V any] struct {
	seed   maphash.Seed
	blocks []*[blockSize]*entry[K, V]
	chains uint64 // the number of chains
	len    uint64 // the number of entries
}

const blockSize = 16

func (t *table[K, V]) chain(i uint64) **entry[K, V] { return &t.blocks[i/blockSize][i%blockSize] }

// chainOf returns the chain of a hash. The table must have at least one chain.
func (t *table[K, V]) chainOf(hash uint64) **entry[K, V] {
	i := hash & (1<<bits.Len64(t.chains-1) - 1)
	if i >= t.chains {
		i = parentChain(i)
	}
	return t.chain(i)
}

// parentChain returns the chain that is split to make chain i: i without its highest bit.
func parentChain(i uint64) uint64 { return i &^ (1 << (bits.Len64(i) - 1)) }

// find returns the entry of a key, or nil.
func (t *table[K, V]) find(hash uint64, key K) *entry[K, V] {
	if t.len == 0 {
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
	if t.len++; 2*t.len > 3*t.chains {
		t.split()
	}
	at := t.chainOf(hash)
	e.next, *at = *at, e
}

// split adds one chain.
func (t *table[K, V]) split() {
	i := t.chains
	if i%blockSize == 0 {
		t.blocks = append(t.blocks, new([blockSize]*entry[K, V]))
	}
	t.chains++
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
	if t.len == 0 {
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
	for t.len--; 2*t.len < t.chains; {
		t.merge()
	}
}

// merge undoes the last split.
func (t *table[K, V]) merge() {
	t.chains--
	i := t.chains
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
		for i := range t.chains {
			for e := *t.chain(i); e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}
