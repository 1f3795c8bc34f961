package keyed

import (
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timer"
)

// Timers keeps at most one pending timer for each key. Setting a pending key replaces
// its value and its deadline. When a key's deadline passes, Timers drops the key and
// calls the callback with the key and the value. Make one with [New].
//
// To keep the pending values, call Drain before you close the Scheduler. Drain does not
// return values whose deadlines have passed, even if their callbacks have not run yet.
// After Close, [timer.Scheduler.TakeLeftover] returns a timer for each value whose
// callback has not run. The Func of that timer runs the callback.
//
// After the Scheduler is closed, Set fails, and Move, Remove and Drain find no key.
// Get, All and Len still report a pending key until its deadline.
//
// Each method that takes a key panics if the key is not equal to itself, such as NaN,
// or cannot be hashed, such as an interface that contains a slice.
type Timers[K comparable, V any] struct {
	s      *timer.Scheduler
	f      func(K, V)
	onFire func(*node) // the method value k.runCallback, made once
	epoch  time.Time   // deadlines are nanoseconds since epoch, on the Scheduler's clock
	seed   maphash.Seed
	// The high bits of a key's hash choose its part.
	parts []part[K, V]
	shift int // hash >> shift is the index of the part
}

// A part holds some of the keys, under its own lock. It is safe to call the Scheduler
// while holding the lock, because the Scheduler's methods never run a callback.
type part[K comparable, V any] struct {
	mu    sync.Mutex
	table table[K, V]
	// No deadline in the table is before earliest.
	earliest int64
}

// An entry is one value of a key. The table contains the last entry of each key. An
// expired entry stays in the table until its callback runs, or until Set, SetIfAbsent or
// Len removes it.
type entry[K comparable, V any] struct {
	node // must be first: see Timers.runCallback
	key  K

	// The part's lock guards the fields below.

	value    V
	deadline int64
	handle   timer.Handle
	next     *entry[K, V] // the next entry in the table's chain
}

// A node is the first field of an entry. The entry's timer calls node.fire: a method
// value of the node takes 16 bytes. A method value of the entry, a generic type, would
// also store its type arguments.
type node struct{ onFire func(*node) }

func (n *node) fire() { n.onFire(n) }

// New returns Timers without keys. Their timers run on s and call f. New panics if s or f
// is nil.
func New[K comparable, V any](s *timer.Scheduler, f func(key K, value V)) *Timers[K, V] {
	if s == nil || f == nil {
		panic("keyed: New with a nil Scheduler or func")
	}
	partBits := bits.Len(uint(4*runtime.GOMAXPROCS(0) - 1))
	k := &Timers[K, V]{
		s:     s,
		f:     f,
		epoch: s.Now(),
		seed:  maphash.MakeSeed(),
		parts: make([]part[K, V], 1<<partBits),
		shift: 64 - partBits,
	}
	k.onFire = k.runCallback
	for i := range k.parts {
		k.parts[i].table.seed = k.seed
		k.parts[i].earliest = math.MaxInt64
	}
	return k
}

func (k *Timers[K, V]) mustBeMade() {
	if k.s == nil {
		panic("keyed: Timers that were not made by New")
	}
}

// now returns the time of the Scheduler's clock, in nanoseconds since the epoch.
func (k *Timers[K, V]) now() int64 {
	k.mustBeMade()
	return int64(k.s.Now().Sub(k.epoch))
}

// partOf returns a key's hash and part. It panics if the key cannot be hashed. It also
// panics if the key is not equal to itself, because the table could never find such a
// key.
func (k *Timers[K, V]) partOf(key K) (hash uint64, p *part[K, V]) {
	if key != key {
		panic("keyed: a key must be equal to itself")
	}
	hash = maphash.Comparable(k.seed, key)
	return hash, &k.parts[hash>>k.shift]
}

// Set sets the value and the deadline of key: after d, the callback runs with the key
// and the value. If the key is pending, Set replaces its value and its deadline, and
// allocates nothing. If d is zero or less, the callback is due at once, but never runs
// inside Set.
//
// The error is [timer.ErrClosed] or, for a key that is not pending,
// [timer.ErrTooManyPending]. After an error nothing has changed.
func (k *Timers[K, V]) Set(key K, value V, d time.Duration) error {
	now := k.now()
	hash, p := k.partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if p.moveLocked(e, now, d) {
		e.value = value
		return nil
	}
	return k.startLocked(p, e, hash, now, key, value, d)
}

// SetIfAbsent is like Set, for a key that is not pending. If the key is pending,
// SetIfAbsent reports false and changes nothing.
func (k *Timers[K, V]) SetIfAbsent(key K, value V, d time.Duration) (set bool, err error) {
	now := k.now()
	hash, p := k.partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if e.pending(now) {
		return false, nil
	}
	err = k.startLocked(p, e, hash, now, key, value, d)
	return err == nil, err
}

// startLocked adds an entry and starts its timer. If expired is not nil, the new entry
// replaces it: expired is the key's entry whose deadline has passed.
func (k *Timers[K, V]) startLocked(p *part[K, V], expired *entry[K, V], hash uint64, now int64, key K, value V, d time.Duration) error {
	e := &entry[K, V]{node: node{k.onFire}, key: key, value: value, deadline: deadlineAfter(now, d)}
	h, err := k.s.Start(d, e.fire)
	if err != nil {
		return err
	}
	e.handle = h
	if expired != nil {
		p.table.remove(hash, expired) // its callback still runs
	}
	p.table.add(hash, e)
	p.earliest = min(p.earliest, e.deadline)
	return nil
}

// deadlineAfter returns now plus d, or the last possible deadline if that overflows.
func deadlineAfter(now int64, d time.Duration) int64 {
	if d > time.Duration(math.MaxInt64-now) {
		return math.MaxInt64
	}
	return now + int64(max(d, 0))
}

// Move changes the deadline of key to d from now, and keeps the value. If d is zero or
// less, the callback is due at once. Move reports false if the key is not pending. It
// allocates nothing.
func (k *Timers[K, V]) Move(key K, d time.Duration) bool {
	now := k.now()
	hash, p := k.partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moveLocked(p.table.find(hash, key), now, d)
}

// moveLocked changes the deadline of e. It reports false if e is not pending.
func (p *part[K, V]) moveLocked(e *entry[K, V], now int64, d time.Duration) bool {
	if !e.pending(now) || !e.handle.Move(d) {
		return false
	}
	e.deadline = deadlineAfter(now, d)
	p.earliest = min(p.earliest, e.deadline)
	return true
}

// Remove removes key, so that its callback will not run, and returns the value. It
// reports false if the key is not pending.
func (k *Timers[K, V]) Remove(key K) (V, bool) {
	return k.removeIf(key, func(*entry[K, V]) bool { return true })
}

// removeIf is like Remove, but removes the entry only if the condition is true for it.
func (k *Timers[K, V]) removeIf(key K, condition func(*entry[K, V]) bool) (value V, removed bool) {
	now := k.now()
	hash, p := k.partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if !e.pending(now) || !condition(e) || !e.handle.Stop() {
		return value, false
	}
	p.table.remove(hash, e)
	return e.value, true
}

// Get returns the value of key. It reports false if the key is not pending.
func (k *Timers[K, V]) Get(key K) (V, bool) {
	item, ok := k.find(key)
	return item.Value, ok
}

// Deadline returns the deadline of key, on the Scheduler's clock. It reports false if the
// key is not pending. The callback does not run before the deadline: see package timer
// for how late it may run.
func (k *Timers[K, V]) Deadline(key K) (time.Time, bool) {
	item, ok := k.find(key)
	return item.Deadline, ok
}

func (k *Timers[K, V]) find(key K) (Item[K, V], bool) {
	now := k.now()
	hash, p := k.partOf(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.table.find(hash, key); e.pending(now) {
		return k.item(e), true
	}
	return Item[K, V]{}, false
}

// Len returns the number of pending keys. It takes O(GOMAXPROCS). If keys have expired,
// Len also removes them, which takes at most O(n).
func (k *Timers[K, V]) Len() int {
	now := k.now()
	n := 0
	for i := range k.parts {
		p := &k.parts[i]
		p.mu.Lock()
		p.expireLocked(now)
		n += int(p.table.len)
		p.mu.Unlock()
	}
	return n
}

// expireLocked removes expired entries from the table. Their callbacks still run.
func (p *part[K, V]) expireLocked(now int64) {
	if now < p.earliest {
		return
	}
	p.earliest = math.MaxInt64
	var expired []*entry[K, V]
	for e := range p.table.all() {
		if e.pending(now) {
			p.earliest = min(p.earliest, e.deadline)
		} else {
			expired = append(expired, e)
		}
	}
	for _, e := range expired {
		p.table.remove(maphash.Comparable(p.table.seed, e.key), e)
	}
}

// An Item is a pending key with its value and deadline.
type Item[K comparable, V any] struct {
	Key      K
	Value    V
	Deadline time.Time // on the Scheduler's clock
}

// All returns an iterator over the pending keys and their values, in no particular
// order. The loop's body may call any method. If a key changes during the loop, the key
// may be missing, or come with its earlier value. All takes O(n), and copies only some
// of the keys at a time.
func (k *Timers[K, V]) All() iter.Seq2[K, V] {
	k.mustBeMade()
	return func(yield func(K, V) bool) {
		for item := range k.Items() {
			if !yield(item.Key, item.Value) {
				return
			}
		}
	}
}

// Items is like [Timers.All], but also returns the deadlines.
func (k *Timers[K, V]) Items() iter.Seq[Item[K, V]] {
	k.mustBeMade()
	return func(yield func(Item[K, V]) bool) {
		var items []Item[K, V]
		for i := range k.parts {
			p := &k.parts[i]
			items = items[:0]
			now := k.now()
			p.mu.Lock()
			for e := range p.table.all() {
				if e.pending(now) {
					items = append(items, k.item(e))
				}
			}
			p.mu.Unlock()
			for _, item := range items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// Drain removes the keys that are pending when it is called, and returns how many it
// removed. It calls f with each key and value, in the order of deadlines, on the calling
// goroutine. It skips a key that is removed, fires, or gets another deadline before its
// turn. If f panics, the remaining keys stay pending. Drain takes O(n log n).
func (k *Timers[K, V]) Drain(f func(key K, value V)) int {
	items := slices.SortedFunc(k.Items(), func(a, b Item[K, V]) int { return a.Deadline.Compare(b.Deadline) })
	n := 0
	for _, item := range items {
		sameDeadline := func(e *entry[K, V]) bool { return k.item(e).Deadline.Equal(item.Deadline) }
		if value, ok := k.removeIf(item.Key, sameDeadline); ok {
			n++
			f(item.Key, value)
		}
	}
	return n
}

// pending reports whether e is an entry whose deadline has not passed.
func (e *entry[K, V]) pending(now int64) bool { return e != nil && now < e.deadline }

func (k *Timers[K, V]) item(e *entry[K, V]) Item[K, V] {
	return Item[K, V]{e.key, e.value, k.epoch.Add(time.Duration(e.deadline))}
}

// runCallback is called when the timer of an entry fires. n is the first field of that entry.
func (k *Timers[K, V]) runCallback(n *node) {
	e := (*entry[K, V])(unsafe.Pointer(n))
	hash, p := k.partOf(e.key)
	p.mu.Lock()
	p.table.remove(hash, e)
	value := e.value
	p.mu.Unlock()
	k.f(e.key, value)
}
