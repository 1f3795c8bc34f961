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

// Timers keeps at most one pending timer for each key. When a key's deadline passes,
// Timers drops the key and calls the callback with the key and the value. Make one with
// [New].
//
// A method panics if its key is not equal to itself, such as NaN, or cannot be hashed,
// such as an interface that contains a slice.
//
// To keep the pending values, call Drain before you close the Scheduler. After Close,
// the Scheduler's TakeLeftover returns the timers whose callbacks have not run. To run
// a callback, call the Func of its timer.
//
// After the Scheduler is closed, Set fails, and Move, Remove and Drain find no key.
// Get, Deadline, All and Len still find keys.
type Timers[K comparable, V any] struct {
	s         *timer.Scheduler
	f         func(K, V)
	onFire    func(*entryHeader) // the method value k.runCallback, made once
	startTime time.Time          // deadlines are nanoseconds since startTime, on the Scheduler's clock
	hashSeed  maphash.Seed
	// The high bits of a key's hash are the index of its shard.
	shards     []shard[K, V]
	shardShift int // hash >> shardShift is the index of the shard
}

// A shard holds some of the keys, under its own lock. While a goroutine holds the lock,
// it may call the Scheduler, which never runs a callback inside its methods.
type shard[K comparable, V any] struct {
	mu    sync.Mutex
	table table[K, V]
	// No deadline in the table is before earliestDeadline.
	earliestDeadline int64
}

// An entry is a key with its value and deadline. An expired entry may stay in the table
// until its callback runs.
type entry[K comparable, V any] struct {
	entryHeader // must be first: see Timers.runCallback
	key         K

	// The shard's lock guards the fields below.

	value    V
	deadline int64
	handle   timer.Handle
	next     *entry[K, V] // the next entry in the table's chain
}

// An entryHeader is the first field of an entry. The timer calls its method fire: a
// method value of the generic type entry would take more memory.
type entryHeader struct{ onFire func(*entryHeader) }

func (n *entryHeader) fire() { n.onFire(n) }

// New returns Timers without keys. Their timers run on s and call f. New panics if s or f
// is nil.
func New[K comparable, V any](s *timer.Scheduler, f func(key K, value V)) *Timers[K, V] {
	if s == nil || f == nil {
		panic("keyed: New with a nil Scheduler or func")
	}
	shardBits := bits.Len(uint(4*runtime.GOMAXPROCS(0) - 1))
	k := &Timers[K, V]{
		s:          s,
		f:          f,
		startTime:  s.Now(),
		hashSeed:   maphash.MakeSeed(),
		shards:     make([]shard[K, V], 1<<shardBits),
		shardShift: 64 - shardBits,
	}
	k.onFire = k.runCallback
	for i := range k.shards {
		k.shards[i].table.hashSeed = k.hashSeed
		k.shards[i].earliestDeadline = math.MaxInt64
	}
	return k
}

func (k *Timers[K, V]) mustBeMade() {
	if k.s == nil {
		panic("keyed: Timers that were not made by New")
	}
}

// nanosSinceStart returns the nanoseconds since startTime, on the Scheduler's clock.
func (k *Timers[K, V]) nanosSinceStart() int64 {
	k.mustBeMade()
	return int64(k.s.Now().Sub(k.startTime))
}

// shardOf returns a key's hash and shard. It panics if the key is not equal to itself,
// or cannot be hashed.
func (k *Timers[K, V]) shardOf(key K) (hash uint64, sh *shard[K, V]) {
	if key != key {
		panic("keyed: a key must be equal to itself")
	}
	hash = maphash.Comparable(k.hashSeed, key)
	return hash, &k.shards[hash>>k.shardShift]
}

// Set sets the value of key, and its deadline to d from now. For a pending key, Set
// replaces both, and allocates nothing. The callback never runs inside Set, even if d
// is zero or less.
//
// The error is [timer.ErrClosed] or, for a key that is not pending,
// [timer.ErrTooManyPending]. After an error nothing has changed.
func (k *Timers[K, V]) Set(key K, value V, d time.Duration) error {
	now := k.nanosSinceStart()
	hash, sh := k.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.table.find(hash, key)
	if sh.moveDeadlineLocked(e, now, d) {
		e.value = value
		return nil
	}
	return k.addEntryLocked(sh, e, hash, now, key, value, d)
}

// SetIfAbsent is like Set, for a key that is not pending. If the key is pending,
// SetIfAbsent reports false and changes nothing.
func (k *Timers[K, V]) SetIfAbsent(key K, value V, d time.Duration) (set bool, err error) {
	now := k.nanosSinceStart()
	hash, sh := k.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.table.find(hash, key)
	if e.isPending(now) {
		return false, nil
	}
	err = k.addEntryLocked(sh, e, hash, now, key, value, d)
	return err == nil, err
}

// addEntryLocked adds an entry and starts its timer. If expired is not nil, it is the
// key's expired entry, and the new entry replaces it in the table.
func (k *Timers[K, V]) addEntryLocked(sh *shard[K, V], expired *entry[K, V], hash uint64, now int64, key K, value V, d time.Duration) error {
	e := &entry[K, V]{entryHeader: entryHeader{k.onFire}, key: key, value: value, deadline: deadlineAfter(now, d)}
	h, err := k.s.Start(d, e.fire)
	if err != nil {
		return err
	}
	e.handle = h
	if expired != nil {
		sh.table.remove(hash, expired) // its callback still runs
	}
	sh.table.add(hash, e)
	sh.earliestDeadline = min(sh.earliestDeadline, e.deadline)
	return nil
}

// deadlineAfter returns now plus d, or the last possible deadline if that overflows.
func deadlineAfter(now int64, d time.Duration) int64 {
	if d > time.Duration(math.MaxInt64-now) {
		return math.MaxInt64
	}
	return now + int64(max(d, 0))
}

// Move changes the deadline of key to d from now, and keeps the value. It reports false
// if the key is not pending. It allocates nothing.
func (k *Timers[K, V]) Move(key K, d time.Duration) bool {
	now := k.nanosSinceStart()
	hash, sh := k.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.moveDeadlineLocked(sh.table.find(hash, key), now, d)
}

// moveDeadlineLocked changes the deadline of e. It reports false if e is not pending.
func (sh *shard[K, V]) moveDeadlineLocked(e *entry[K, V], now int64, d time.Duration) bool {
	if !e.isPending(now) || !e.handle.Move(d) {
		return false
	}
	e.deadline = deadlineAfter(now, d)
	sh.earliestDeadline = min(sh.earliestDeadline, e.deadline)
	return true
}

// Remove removes key, so that its callback will not run, and returns the value. It
// reports false if the key is not pending.
func (k *Timers[K, V]) Remove(key K) (V, bool) {
	return k.removeIf(key, func(*entry[K, V]) bool { return true })
}

// removeIf is like Remove, but removes the entry only if the condition is true for it.
func (k *Timers[K, V]) removeIf(key K, condition func(*entry[K, V]) bool) (value V, removed bool) {
	now := k.nanosSinceStart()
	hash, sh := k.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.table.find(hash, key)
	if !e.isPending(now) || !condition(e) || !e.handle.Stop() {
		return value, false
	}
	sh.table.remove(hash, e)
	return e.value, true
}

// Get returns the value of key. It reports false if the key is not pending.
func (k *Timers[K, V]) Get(key K) (V, bool) {
	item, ok := k.findItem(key)
	return item.Value, ok
}

// Deadline returns the deadline of key, on the Scheduler's clock. It reports false if
// the key is not pending.
func (k *Timers[K, V]) Deadline(key K) (time.Time, bool) {
	item, ok := k.findItem(key)
	return item.Deadline, ok
}

func (k *Timers[K, V]) findItem(key K) (Item[K, V], bool) {
	now := k.nanosSinceStart()
	hash, sh := k.shardOf(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.table.find(hash, key); e.isPending(now) {
		return k.itemOf(e), true
	}
	return Item[K, V]{}, false
}

// Len returns the number of pending keys. It takes O(GOMAXPROCS). If keys have expired,
// Len also removes them, which takes at most O(n).
func (k *Timers[K, V]) Len() int {
	now := k.nanosSinceStart()
	n := 0
	for i := range k.shards {
		sh := &k.shards[i]
		sh.mu.Lock()
		sh.removeExpiredLocked(now)
		n += int(sh.table.entryCount)
		sh.mu.Unlock()
	}
	return n
}

// removeExpiredLocked removes expired entries from the table. Their callbacks still run.
func (sh *shard[K, V]) removeExpiredLocked(now int64) {
	if now < sh.earliestDeadline {
		return
	}
	sh.earliestDeadline = math.MaxInt64
	var expired []*entry[K, V]
	for e := range sh.table.entries() {
		if e.isPending(now) {
			sh.earliestDeadline = min(sh.earliestDeadline, e.deadline)
		} else {
			expired = append(expired, e)
		}
	}
	for _, e := range expired {
		sh.table.remove(maphash.Comparable(sh.table.hashSeed, e.key), e)
	}
}

// An Item is a pending key with its value and deadline.
type Item[K comparable, V any] struct {
	Key      K
	Value    V
	Deadline time.Time // on the Scheduler's clock
}

// All returns an iterator over the pending keys and their values, in no particular
// order. The loop may call any method. If a key changes meanwhile, the loop may miss
// it, or get its earlier value. All takes O(n).
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
		for i := range k.shards {
			sh := &k.shards[i]
			items = items[:0]
			now := k.nanosSinceStart()
			sh.mu.Lock()
			for e := range sh.table.entries() {
				if e.isPending(now) {
					items = append(items, k.itemOf(e))
				}
			}
			sh.mu.Unlock()
			for _, item := range items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// Drain removes the keys that are pending when it is called, and returns their number.
// It calls f with each key and value, in the order of deadlines, on the calling
// goroutine. It skips a key that is removed, fires or gets another deadline meanwhile.
// If f panics, the remaining keys stay pending. Drain takes O(n log n).
func (k *Timers[K, V]) Drain(f func(key K, value V)) int {
	items := slices.SortedFunc(k.Items(), func(a, b Item[K, V]) int { return a.Deadline.Compare(b.Deadline) })
	n := 0
	for _, item := range items {
		hasSameDeadline := func(e *entry[K, V]) bool { return k.itemOf(e).Deadline.Equal(item.Deadline) }
		if value, ok := k.removeIf(item.Key, hasSameDeadline); ok {
			n++
			f(item.Key, value)
		}
	}
	return n
}

// isPending reports whether e is an entry whose deadline has not passed.
func (e *entry[K, V]) isPending(now int64) bool { return e != nil && now < e.deadline }

func (k *Timers[K, V]) itemOf(e *entry[K, V]) Item[K, V] {
	return Item[K, V]{e.key, e.value, k.startTime.Add(time.Duration(e.deadline))}
}

// runCallback is called when the timer of an entry fires. n is the entry's first field.
func (k *Timers[K, V]) runCallback(n *entryHeader) {
	e := (*entry[K, V])(unsafe.Pointer(n))
	hash, sh := k.shardOf(e.key)
	sh.mu.Lock()
	sh.table.remove(hash, e)
	value := e.value
	sh.mu.Unlock()
	k.f(e.key, value)
}
