package purgatory

import (
	"maps"
	"sync"
)

// A shard holds the lists of the keys that fall to it.
type shard[K comparable] struct {
	p *Purgatory[K]

	mu sync.Mutex
	// All below is guarded by mu.

	// lists has a list for each key that is watched, and for no other. most is how many
	// it has had since it was made.
	lists map[K]*list[K]
	most  int
	// spare is a list that is not in use, nil if there is none: keys come and
	// go, and most often with one operation.
	spare *list[K]
	// keyless is the list of the operations without a key. It counts neither in Watched
	// nor in Keys.
	keyless list[K]
	watched int
	// closed is set once by Close. Nothing is linked after it.
	closed bool
	n      counts

	_ [128]byte // keeps two shards' locks out of one pair of cache lines
}

// A list is the operations that wait for one key, in the order in which they
// came: a ring through root.
type list[K comparable] struct {
	shard *shard[K]
	key   K
	n     int
	root  node[K]
}

// A node is an operation's place in one list. An operation gets new nodes each time
// that it enters. So code that kept one from an earlier time notices.
type node[K comparable] struct {
	// owner is fixed.
	owner *Delayed[K]
	// prev and next are guarded by the shard's lock.
	prev, next *node[K]
	// list is what the node is in, nil once it has left. It is written with
	// both the owner's lock and the shard's held, and so read under either.
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

// listLocked returns the key's list, which it makes if there is none.
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
		sh.most = max(sh.most, len(sh.lists))
	}
	return l
}

// linkLocked puts n at the end of l.
func (sh *shard[K]) linkLocked(l *list[K], n *node[K]) {
	n.list = l
	n.prev, n.next = l.root.prev, &l.root
	n.prev.next, l.root.prev = n, n
	l.n++
	if l != &sh.keyless {
		sh.watched++
	}
}

// unlinkLocked takes n out of its list, and the list out of the map if it was
// the last one. Both are one critical section, so nobody can link to a list that
// is no longer in the map.
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

// shrinkLocked gives memory back when few keys are left of many, which a map does not do
// by itself. The copy takes O(1) for each key that has left.
func (sh *shard[K]) shrinkLocked() {
	const small = 64
	if sh.most <= small || len(sh.lists) > sh.most/8 {
		return
	}
	lists := make(map[K]*list[K], len(sh.lists))
	maps.Copy(lists, sh.lists)
	sh.lists, sh.most = lists, len(lists)
}

// appendLocked appends l's nodes.
func (l *list[K]) appendLocked(to []*node[K]) []*node[K] {
	for n := l.root.next; n != &l.root; n = n.next {
		to = append(to, n)
	}
	return to
}
