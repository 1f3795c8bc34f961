package purgatory

import (
	"maps"
	"sync"
)

// A shard contains the lists of a share of the keys.
type shard[K comparable] struct {
	p *Purgatory[K]

	mu sync.Mutex
	// All below is guarded by mu.

	// lists has a list for each key that operations wait for. peak is the largest size of
	// the map since it was made.
	lists map[K]*list[K]
	peak  int
	// spare is an unused list, or nil. Keys come and go, most often with one operation.
	spare *list[K]
	// keyless is the list of the operations without a key. It counts neither in Watched
	// nor in Keys.
	keyless list[K]
	watched int
	// closed is set once, by Close. No node is linked afterwards.
	closed bool
	n      counts

	_ [128]byte // keeps the locks of two shards out of one pair of cache lines
}

// A list holds the operations that wait for one key, in the order in which they were
// added. It is a ring through root.
type list[K comparable] struct {
	shard *shard[K]
	key   K
	n     int
	root  node[K]
}

// A node links an operation into one list. An operation gets new nodes each time that it
// is added, so that an old node is recognized as stale.
type node[K comparable] struct {
	// owner is set once.
	owner *Delayed[K]
	// prev and next are guarded by the shard's lock.
	prev, next *node[K]
	// list is the list that contains the node, or nil after the node has left. It is
	// written under both the owner's lock and the shard's, and may be read under either.
	list *list[K]
}

func (sh *shard[K]) init(p *Purgatory[K]) {
	sh.p = p
	sh.lists = make(map[K]*list[K])
	sh.keyless.init(sh)
}

func (l *list[K]) init(sh *shard[K]) {
	l.shard = sh
	l.root.prev, l.root.next = &l.root, &l.root
}

// listLocked returns the key's list. It makes one if there is none.
func (sh *shard[K]) listLocked(key K) *list[K] {
	l, ok := sh.lists[key]
	if !ok {
		if l = sh.spare; l != nil {
			sh.spare = nil
		} else {
			l = new(list[K])
			l.init(sh)
		}
		l.key = key
		sh.lists[key] = l
		sh.peak = max(sh.peak, len(sh.lists))
	}
	return l
}

// linkLocked appends n to l.
func (sh *shard[K]) linkLocked(l *list[K], n *node[K]) {
	n.list = l
	n.prev, n.next = l.root.prev, &l.root
	n.prev.next, l.root.prev = n, n
	l.n++
	if l != &sh.keyless {
		sh.watched++
	}
}

// unlinkLocked takes n out of its list. If the list is then empty, it also removes the
// list from the map, in the same critical section: so no node is linked to a list that is
// no longer in the map.
func (sh *shard[K]) unlinkLocked(n *node[K]) {
	l := n.list
	n.prev.next, n.next.prev = n.next, n.prev
	n.prev, n.next, n.list = nil, nil, nil
	l.n--
	if l == &sh.keyless {
		return
	}
	sh.watched--
	if l.n == 0 {
		delete(sh.lists, l.key)
		sh.shrinkLocked()
		var none K
		l.key = none
		sh.spare = l
	}
}

// shrinkLocked releases memory when few of many keys remain. A Go map does not do so by
// itself. The copy costs O(1) for each key that has left.
func (sh *shard[K]) shrinkLocked() {
	const small = 64
	if sh.peak <= small || len(sh.lists) > sh.peak/8 {
		return
	}
	lists := make(map[K]*list[K], len(sh.lists))
	maps.Copy(lists, sh.lists)
	sh.lists, sh.peak = lists, len(lists)
}

// appendLocked appends l's nodes.
func (l *list[K]) appendLocked(to []*node[K]) []*node[K] {
	for n := l.root.next; n != &l.root; n = n.next {
		to = append(to, n)
	}
	return to
}
