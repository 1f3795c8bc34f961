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

// Timers has at most one pending timer for each key: setting a key again replaces its
// value and its deadline. When a key's deadline passes, the key leaves, and the callback
// runs with the key and the value. Make one with [New].
//
// A value whose callback is still to come when the Scheduler is closed gets none: the
// Scheduler hands its timer back. Call Drain before to keep what is pending. Drain does not
// find values whose deadlines have passed, up to a tick or more before their callbacks.
// After Close, [timer.Scheduler.TakeLeftover] has these too: each Leftover's Func runs the
// callback with its key and value.
//
// Once the Scheduler is closed, Set fails, and Move, Remove and Drain find no key. Get, All
// and Len still tell what was pending, until its deadline.
//
// Each method that takes a key panics if the key is not equal to itself, as NaN, or cannot
// be hashed, as an interface that holds a slice.
type Timers[K comparable, V any] struct {
	s      *timer.Scheduler
	f      func(K, V)
	onFire func(*node) // fired, as one value
	epoch  time.Time   // deadlines are nanoseconds from here, on the Scheduler's clock
	seed   maphash.Seed
	// A key belongs to a part, by its hash.
	parts []part[K, V]
	shift int // of a hash, to get the part
}

// A part is some of the keys, under a lock of their own. The lock may be held while the
// Scheduler's methods are called, for a callback never runs inside them.
type part[K comparable, V any] struct {
	mu    sync.Mutex
	table table[K, V]
	// earliest is not after the deadline of any entry in the table.
	earliest int64
}

// An entry is one value of a key, from Set until it leaves. The table has the one that
// was set last. An expired entry stays there until its callback runs, or until something
// else finds it expired.
type entry[K comparable, V any] struct {
	node // first: see Timers.fired
	key  K

	// Guarded by the part's lock.

	value    V
	deadline int64
	handle   timer.Handle
	next     *entry[K, V] // in its chain
}

// A node is the part of an entry that its timer knows. The timer's function is a method
// value of the node, 16 bytes, since one of an entry also keeps the type arguments.
type node struct{ fired func(*node) }

func (n *node) fire() { n.fired(n) }

// New returns Timers without keys. Their timers are on s and run f. It panics if s or f
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
	k.onFire = k.fired
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

// now reads the Scheduler's clock.
func (k *Timers[K, V]) now() int64 {
	k.mustBeMade()
	return int64(k.s.Now().Sub(k.epoch))
}

// part returns a key's hash and part. It panics for a key that cannot be hashed, such as
// an interface that holds a slice, and for one that is not equal to itself, a NaN: the
// table could never find it.
func (k *Timers[K, V]) part(key K) (hash uint64, p *part[K, V]) {
	if key != key {
		panic("keyed: a key must be equal to itself")
	}
	hash = maphash.Comparable(k.seed, key)
	return hash, &k.parts[hash>>k.shift]
}

// Set makes the callback run with key and value after d from now, in place of what was
// pending for the key. A d of zero or less is due at once; the callback never runs
// inside Set. The error is [timer.ErrClosed] or, for a key that is not pending,
// [timer.ErrTooManyPending]; then nothing has changed. Over a key that is pending it
// allocates nothing.
func (k *Timers[K, V]) Set(key K, value V, d time.Duration) error {
	now := k.now()
	hash, p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if p.moveLocked(e, now, d) {
		e.value = value
		return nil
	}
	return k.startLocked(p, e, hash, now, key, value, d)
}

// SetIfAbsent is Set for a key that is not pending. It reports false, and changes
// nothing, if the key is pending.
func (k *Timers[K, V]) SetIfAbsent(key K, value V, d time.Duration) (set bool, err error) {
	now := k.now()
	hash, p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if e.pending(now) {
		return false, nil
	}
	err = k.startLocked(p, e, hash, now, key, value, d)
	return err == nil, err
}

// startLocked puts in an entry, in place of the expired one, if there is one.
func (k *Timers[K, V]) startLocked(p *part[K, V], expired *entry[K, V], hash uint64, now int64, key K, value V, d time.Duration) error {
	e := &entry[K, V]{node: node{k.onFire}, key: key, value: value, deadline: after(now, d)}
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

// after returns the moment d after now.
func after(now int64, d time.Duration) int64 {
	if d > time.Duration(math.MaxInt64-now) {
		return math.MaxInt64
	}
	return now + int64(max(d, 0))
}

// Move makes the key's callback run after d from now instead, with the value it has; at
// once if d is zero or less. It reports false if the key is not pending. It allocates
// nothing.
func (k *Timers[K, V]) Move(key K, d time.Duration) bool {
	now := k.now()
	hash, p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moveLocked(p.table.find(hash, key), now, d)
}

// moveLocked sets another deadline, or reports false if the entry is not pending.
func (p *part[K, V]) moveLocked(e *entry[K, V], now int64, d time.Duration) bool {
	if !e.pending(now) || !e.handle.Move(d) {
		return false
	}
	e.deadline = after(now, d)
	p.earliest = min(p.earliest, e.deadline)
	return true
}

// Remove takes the key out: its callback will not run. It returns the value, or false if
// the key is not pending.
func (k *Timers[K, V]) Remove(key K) (V, bool) {
	return k.removeIf(key, func(*entry[K, V]) bool { return true })
}

// removeIf is Remove for an entry of which ok reports true.
func (k *Timers[K, V]) removeIf(key K, ok func(*entry[K, V]) bool) (value V, removed bool) {
	now := k.now()
	hash, p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.table.find(hash, key)
	if !e.pending(now) || !ok(e) || !e.handle.Stop() {
		return value, false
	}
	p.table.remove(hash, e)
	return e.value, true
}

// Get returns the value of a key that is pending, or false.
func (k *Timers[K, V]) Get(key K) (V, bool) {
	item, ok := k.find(key)
	return item.Value, ok
}

// Deadline returns the deadline of a key that is pending, on the Scheduler's clock, or
// false. The callback runs then at the earliest: see package timer for how late it may
// run.
func (k *Timers[K, V]) Deadline(key K) (time.Time, bool) {
	item, ok := k.find(key)
	return item.Deadline, ok
}

func (k *Timers[K, V]) find(key K) (Item[K, V], bool) {
	now := k.now()
	hash, p := k.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.table.find(hash, key); e.pending(now) {
		return k.item(e), true
	}
	return Item[K, V]{}, false
}

// Len returns the number of keys that are pending. It takes O(parts), which are four a
// proc, and O(n/parts) more for each part in which a deadline has passed since the last
// Len.
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

// expireLocked takes expired entries out of the table. Their callbacks still run.
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

// An Item is a key that is pending.
type Item[K comparable, V any] struct {
	Key      K
	Value    V
	Deadline time.Time // on the Scheduler's clock
}

// All returns the keys that are pending with their values, in no order. The loop's body
// may use the Timers: a key that is set, removed or fires meanwhile may be missing or
// come with its earlier value. O(n); it copies the keys of one part at a time.
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

// Items is [Timers.All] with the deadlines.
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

// Drain takes out all keys that are pending when it is called. It calls f with each,
// ordered by deadline, on the calling goroutine. A key that is removed, fires, or gets
// another deadline before its turn is left alone. Drain returns how many keys it took
// out. If f panics, the keys whose turn had not come stay pending. O(n log n).
func (k *Timers[K, V]) Drain(f func(key K, value V)) int {
	items := slices.SortedFunc(k.Items(), func(a, b Item[K, V]) int { return a.Deadline.Compare(b.Deadline) })
	n := 0
	for _, item := range items {
		unmoved := func(e *entry[K, V]) bool { return k.item(e).Deadline.Equal(item.Deadline) }
		if value, ok := k.removeIf(item.Key, unmoved); ok {
			n++
			f(item.Key, value)
		}
	}
	return n
}

// pending reports whether the deadline is still to come.
func (e *entry[K, V]) pending(now int64) bool { return e != nil && now < e.deadline }

func (k *Timers[K, V]) item(e *entry[K, V]) Item[K, V] {
	return Item[K, V]{e.key, e.value, k.epoch.Add(time.Duration(e.deadline))}
}

// fired is called when the timer of an entry, whose first field n is, has fired.
func (k *Timers[K, V]) fired(n *node) {
	e := (*entry[K, V])(unsafe.Pointer(n))
	hash, p := k.part(e.key)
	p.mu.Lock()
	p.table.remove(hash, e)
	value := e.value
	p.mu.Unlock()
	k.f(e.key, value)
}
