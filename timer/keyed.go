package timer

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/tickless/tickless/internal/hashmap"
	"github.com/tickless/tickless/internal/wheel"
)

// A Keyed has at most one pending timer for each key: setting a key again replaces
// its value and its deadline. When a key's time comes it leaves the Keyed, and its
// callback runs with the key and the value. Make one with [NewKeyed]. Any goroutine
// may call its methods, also from inside callbacks.
//
// Each key belongs to a shard of the Scheduler, by its hash. The shard's lock guards
// the part of the map with that shard's keys, so a key's entry and its timer change
// together.
type Keyed[K comparable, V any] struct {
	s    *Scheduler
	f    func(K, V)
	seed maphash.Seed
	// parts[i] is guarded by the lock of shard i, and empty until that is made.
	parts []part[K, V]
}

// part is the keys of one shard.
type part[K comparable, V any] struct {
	entries hashmap.Map[K, *keyedEntry[K, V]]
}

// keyedEntry is a key with a pending timer.
type keyedEntry[K comparable, V any] struct {
	node
	keyed *Keyed[K, V]
	sh    *shard // its key's
	id    wheel.ID
	key   K
	value V
	// changes counts the Sets and Moves of the entry, for Drain to notice them.
	changes uint32
}

// NewKeyed returns an empty Keyed whose timers are on s and run f. It panics if s
// or f is nil.
func NewKeyed[K comparable, V any](s *Scheduler, f func(key K, value V)) *Keyed[K, V] {
	if s == nil || f == nil {
		panic("timer: NewKeyed with a nil Scheduler or func")
	}
	s.mustBeMade()
	return &Keyed[K, V]{
		s:     s,
		f:     f,
		seed:  maphash.MakeSeed(),
		parts: make([]part[K, V], s.config.shards),
	}
}

func (k *Keyed[K, V]) mustBeMade() {
	if k.s == nil {
		panic("timer: a Keyed that was not made by NewKeyed")
	}
}

// lock locks the shard of a key. A key that cannot be hashed, such as an
// interface that holds a slice, panics here, in its caller and outside the lock.
// So does one that is not equal to itself, a NaN, which could never be found.
func (k *Keyed[K, V]) lock(key K) (*shard, *part[K, V]) {
	k.mustBeMade()
	if key != key {
		panic("timer: a Keyed's key must be equal to itself")
	}
	i := int(maphash.Comparable(k.seed, key) % uint64(len(k.parts)))
	sh := k.s.shards.at(i)
	sh.mu.Lock()
	return sh, &k.parts[i]
}

// Set makes the callback run with key and value after d from now, in place of what
// was pending for the key. A d of zero or less is due at once; the callback never
// runs inside Set. The error is [ErrClosed] or, for a key that is not pending,
// [ErrTooManyPending], whatever d is; then what was pending stays. It panics if the
// key is not equal to itself, as NaN. O(1); over a key that is pending it allocates
// nothing.
func (k *Keyed[K, V]) Set(key K, value V, d time.Duration) error {
	k.mustBeMade()
	now := k.s.now()
	sh, p := k.lock(key)
	err := k.setLocked(sh, p, key, value, now, d)
	sh.unlock()
	return err
}

func (k *Keyed[K, V]) setLocked(sh *shard, p *part[K, V], key K, value V, now int64, d time.Duration) error {
	if k.s.closed.Load() {
		sh.n.rejected++
		return ErrClosed
	}
	if e, ok := p.entries.Get(key); ok {
		e.value = value
		e.changes++
		sh.resetLocked(now, e.id, d)
		return nil
	}
	e := &keyedEntry[K, V]{keyed: k, sh: sh, key: key, value: value}
	e.owner = e
	p.entries.Put(key, e)
	id, err := sh.startLocked(now, d, nodePayload(&e.node), tagNode)
	if err != nil {
		p.remove(e)
		return err
	}
	e.id = id // of no use if it has fired at once, and so left the map
	return nil
}

// Move makes the key's callback run after d from now instead, with the value it
// has; at once if d is zero or less. It reports false if the key is not pending.
// O(1), without allocation.
func (k *Keyed[K, V]) Move(key K, d time.Duration) bool {
	k.mustBeMade()
	now := k.s.now()
	sh, p := k.lock(key)
	defer sh.unlock()
	e, ok := p.entries.Get(key)
	if !ok {
		return false
	}
	e.changes++
	return sh.resetLocked(now, e.id, d)
}

// Remove takes the key out: its callback will not run. It returns the value, or
// false if the key is not pending: it was never set, has fired, or was removed.
// O(1).
func (k *Keyed[K, V]) Remove(key K) (V, bool) {
	sh, p := k.lock(key)
	defer sh.unlock()
	e, ok := p.entries.Get(key)
	if !ok || !sh.stopLocked(e.id) {
		var zero V
		return zero, false
	}
	p.remove(e)
	return e.value, true
}

// Get returns the value of a key that is pending, or false. O(1).
func (k *Keyed[K, V]) Get(key K) (V, bool) {
	sh, p := k.lock(key)
	defer sh.unlock()
	if e, ok := p.entries.Get(key); ok {
		return e.value, true
	}
	var zero V
	return zero, false
}

// Len returns the number of keys that are pending. O(shards).
func (k *Keyed[K, V]) Len() int {
	k.mustBeMade()
	n := 0
	for sh := range k.s.shards.made() {
		sh.mu.Lock()
		n += k.parts[sh.index].entries.Len()
		sh.mu.Unlock()
	}
	return n
}

// All returns the keys that are pending with their values, in no order. No lock is held
// while the loop's body runs, so it may use the Keyed: a key that is set, removed or
// fires meanwhile may be missing or come with its earlier value. O(n); it copies the
// pairs of one shard at a time.
func (k *Keyed[K, V]) All() iter.Seq2[K, V] {
	k.mustBeMade()
	type pair struct {
		key   K
		value V
	}
	return func(yield func(K, V) bool) {
		var pairs []pair
		for sh := range k.s.shards.made() {
			pairs = pairs[:0]
			sh.mu.Lock()
			for key, e := range k.parts[sh.index].entries.All() {
				pairs = append(pairs, pair{key, e.value})
			}
			sh.mu.Unlock()
			for _, p := range pairs {
				if !yield(p.key, p.value) {
					return
				}
			}
		}
	}
}

// Drain takes out all keys that are pending when it is called. It calls f with each,
// ordered by deadline, on the calling goroutine and without any lock held: f may use
// the Keyed, and what it sets is not drained. A key that is set, moved, removed or
// fires before its turn is left alone. Drain returns how many keys it took out. If f
// panics, the keys whose turn had not come stay pending. O(n log n).
func (k *Keyed[K, V]) Drain(f func(key K, value V)) int {
	k.mustBeMade()
	type turn struct {
		sh       *shard
		e        *keyedEntry[K, V]
		deadline int64
		changes  uint32
	}
	var turns []turn
	for sh := range k.s.shards.made() {
		sh.mu.Lock()
		p := &k.parts[sh.index]
		turns = slices.Grow(turns, p.entries.Len())
		for _, e := range p.entries.All() {
			if deadline, ok := sh.wheel.Deadline(e.id); ok {
				turns = append(turns, turn{sh, e, deadline, e.changes})
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.deadline, b.deadline) })
	n := 0
	for _, t := range turns {
		t.sh.mu.Lock()
		ok := t.e.changes == t.changes && t.sh.stopLocked(t.e.id)
		if ok {
			t.e.part().remove(t.e)
		}
		value := t.e.value
		t.sh.unlock()
		if ok {
			n++
			f(t.e.key, value)
		}
	}
	return n
}

func (e *keyedEntry[K, V]) part() *part[K, V] { return &e.keyed.parts[e.sh.index] }

func (e *keyedEntry[K, V]) expireLocked(*shard, moment) func() {
	e.part().remove(e)
	return e.pendingFunc()
}

// pendingFunc takes the value as it is when it runs, which is as it was when the
// entry left the map: a later Set of the key makes another.
func (e *keyedEntry[K, V]) pendingFunc() func() {
	return func() { e.keyed.f(e.key, e.value) }
}

func (e *keyedEntry[K, V]) anyKey() any { return e.key }

// abandon forgets all keys of the shard at once: all were pending, and so none is
// any more.
func (e *keyedEntry[K, V]) abandon() {
	e.sh.mu.Lock()
	e.part().entries.Clear()
	e.sh.mu.Unlock()
}

func (p *part[K, V]) remove(e *keyedEntry[K, V]) { p.entries.Delete(e.key) }
