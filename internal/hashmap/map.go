// Package hashmap has a map that gives memory back.
package hashmap

import (
	"iter"
	"reflect"
)

// A Map is a Go map whose memory falls when most of its entries have left, as that
// of Go's own does not. No operation takes long for it: the entries move to a
// smaller map a few at a time, with each Put and Delete. The zero Map is empty and
// ready to use. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	entries map[K]V
	// old holds what has yet to move to entries. It is nil if nothing has.
	old map[K]V
	// next is where in old to go on. It is kept over many calls, which a range
	// clause cannot: a range begun again each time would have to pass all slots that
	// were emptied before.
	next *reflect.MapIter
	// peak is how large entries has been since it was made.
	peak int
}

const (
	// small is the size up to which a map may keep its memory.
	small = 64
	// moves is how many entries move at a time. One would do, for the map is an
	// eighth of what it was when they begin to; more bring memory down sooner.
	moves = 16
)

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entries) + len(m.old) }

// Get returns the value of a key.
func (m *Map[K, V]) Get(key K) (v V, ok bool) {
	if v, ok = m.entries[key]; !ok && m.old != nil {
		v, ok = m.old[key]
	}
	return v, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, v V) {
	if m.entries == nil {
		m.entries = make(map[K]V)
	}
	m.entries[key] = v
	if m.old != nil {
		delete(m.old, key)
		m.move()
	}
	m.peak = max(m.peak, len(m.entries))
}

// Delete takes a key out, if it is in.
func (m *Map[K, V]) Delete(key K) {
	delete(m.entries, key)
	if m.old != nil {
		delete(m.old, key)
		m.move()
		return
	}
	n := len(m.entries)
	switch {
	case m.peak <= small || n > m.peak/8:
	case n == 0:
		m.Clear()
	default:
		// Without a hint of its size: to make a large map takes long by itself.
		m.entries, m.old, m.peak = make(map[K]V), m.entries, 0
		m.next = reflect.ValueOf(m.old).MapRange()
		m.move()
	}
}

// move moves some entries out of old.
func (m *Map[K, V]) move() {
	var key K
	var v V
	to := reflect.ValueOf(&key).Elem()
	for range moves {
		if len(m.old) == 0 || !m.next.Next() {
			m.old, m.next = nil, nil
			break
		}
		to.SetIterKey(m.next)
		v = m.old[key]
		m.entries[key] = v
		delete(m.old, key)
	}
	m.peak = max(m.peak, len(m.entries))
}

// Clear takes all keys out.
func (m *Map[K, V]) Clear() { *m = Map[K, V]{} }

// All returns the entries, in no order. The loop's body must not change the Map: a Put
// or a Delete may move entries that have yet to come, or came before.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		old := m.old
		for key, v := range m.entries {
			if !yield(key, v) {
				return
			}
		}
		for key, v := range old {
			if !yield(key, v) {
				return
			}
		}
	}
}
