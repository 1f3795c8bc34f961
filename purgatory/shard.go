package purgatory

import (
	"maps"
	"sync"
)

// A shard holds the lists of some of the keys, under its own lock.
type shard[K comparable] struct {
	p *Purgatory[K]

	mu sync.Mutex
	// mu guards the fields below.

	// lists maps each key that operations wait for to its list. peakListCount is the
	// largest size of this map since it was made.
	lists         map[K]*list[K]
	peakListCount int
	// spareList is an empty list for the next new key, or nil. Many lists are
	// short-lived.
	spareList *list[K]
	// keylessList is the list of the operations without a key. Stats.Watched and
	// Stats.Keys do not count it.
	keylessList list[K]
	watchCount  int // the sum of the lengths of the lists
	// closed is set once, by Close. No node is linked afterwards.
	closed bool
	counts operationCounts

	_ [128]byte // keeps the locks of two shards on different pairs of cache lines
}

// A list holds the operations that wait for one key, in the order in which they were
// added. It is circular: root is before the first node and after the last.
type list[K comparable] struct {
	shard *shard[K]
	key   K
	len   int
	root  node[K]
}

// A node links an operation into one list. An operation gets new nodes each time it is
// added. A timer or a check that still has an old node does nothing.
type node[K comparable] struct {
	// owner is set once.
	owner *Delayed[K]
	// prev and next are guarded by the shard's lock.
	prev, next *node[K]
	// list is the list that contains the node, or nil. To read it, hold the lock of the
	// owner or of the shard. To write it, hold both.
	list *list[K]
}

func (sh *shard[K]) init(p *Purgatory[K]) {
	sh.p = p
	sh.lists = make(map[K]*list[K])
	sh.keylessList.init(sh)
}

func (l *list[K]) init(sh *shard[K]) {
	l.shard = sh
	l.root.prev, l.root.next = &l.root, &l.root
}

// getOrMakeListLocked returns the key's list. It makes one if there is none.
func (sh *shard[K]) getOrMakeListLocked(key K) *list[K] {
	l, ok := sh.lists[key]
	if !ok {
		if l = sh.spareList; l != nil {
			sh.spareList = nil
		} else {
			l = new(list[K])
			l.init(sh)
		}
		l.key = key
		sh.lists[key] = l
		sh.peakListCount = max(sh.peakListCount, len(sh.lists))
	}
	return l
}

// linkNodeLocked appends n to l.
func (sh *shard[K]) linkNodeLocked(l *list[K], n *node[K]) {
	n.list = l
	n.prev, n.next = l.root.prev, &l.root
	n.prev.next, l.root.prev = n, n
	l.len++
	if l != &sh.keylessList {
		sh.watchCount++
	}
}

// unlinkNodeLocked takes n out of its list. It removes an empty list from the map.
func (sh *shard[K]) unlinkNodeLocked(n *node[K]) {
	l := n.list
	n.prev.next, n.next.prev = n.next, n.prev
	n.prev, n.next, n.list = nil, nil, nil
	l.len--
	if l == &sh.keylessList {
		return
	}
	sh.watchCount--
	if l.len == 0 {
		delete(sh.lists, l.key)
		sh.shrinkMapLocked()
		var none K
		l.key = none
		sh.spareList = l
	}
}

// shrinkMapLocked copies the map when most of its keys have left: a Go map does not
// shrink by itself.
func (sh *shard[K]) shrinkMapLocked() {
	const small = 64
	if sh.peakListCount <= small || len(sh.lists) > sh.peakListCount/8 {
		return
	}
	lists := make(map[K]*list[K], len(sh.lists))
	maps.Copy(lists, sh.lists)
	sh.lists, sh.peakListCount = lists, len(lists)
}

// appendNodesLocked appends l's nodes to a slice.
func (l *list[K]) appendNodesLocked(to []*node[K]) []*node[K] {
	for n := l.root.next; n != &l.root; n = n.next {
		to = append(to, n)
	}
	return to
}
