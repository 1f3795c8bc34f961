package keyed

import (
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"time"

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
	startTime time.Time // deadlines are nanoseconds since startTime, on the Scheduler's clock
	hashSeed  maphash.Seed
	// The high bits of a key's hash are the index of its stripe.
	stripes     []stripe[K, V]
	stripeShift int // hash >> stripeShift is the index of the stripe
}

// A stripe holds some of the keys, under its own lock. While a goroutine holds the lock,
// it may call the Scheduler, which never runs a callback inside its methods.
//
// Each timer that has not been stopped stands for one value of its key: the one in
// entries, or an older one in late. So a callback that begins takes the oldest.
type stripe[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]entry[V] // made by the first Set
	peak    int            // the largest size of entries since the map was made
	// late has the values that were replaced after their deadlines, oldest first. Their
	// callbacks have not begun. It is nil if empty.
	late map[K][]V
	// loads has the calls of load in GetOrLoad that are running. It is nil if empty.
	loads map[K]*loading

	_ [24]byte // up to 64 bytes, so that two stripes do not share a cache line
}

// An entry is a key's value and deadline. An expired entry stays in the map until its
// callback begins.
type entry[V any] struct {
	value    V
	deadline int64
	handle   timer.Handle
}

// New returns Timers without keys. Their timers run on s and call f. New panics if s or f
// is nil.
func New[K comparable, V any](s *timer.Scheduler, f func(key K, value V)) *Timers[K, V] {
	if s == nil || f == nil {
		panic("keyed: New with a nil Scheduler or func")
	}
	// Many stripes keep the maps small, so that making one smaller does not take long.
	stripeBits := bits.Len(uint(max(64, 4*runtime.GOMAXPROCS(0)) - 1))
	return &Timers[K, V]{
		s:           s,
		f:           f,
		startTime:   s.Now(),
		hashSeed:    maphash.MakeSeed(),
		stripes:     make([]stripe[K, V], 1<<stripeBits),
		stripeShift: 64 - stripeBits,
	}
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

// stripeOf returns a key's stripe. It panics if the key is not equal to itself, or cannot
// be hashed.
func (k *Timers[K, V]) stripeOf(key K) *stripe[K, V] {
	if key != key {
		panic("keyed: a key must be equal to itself")
	}
	return &k.stripes[maphash.Comparable(k.hashSeed, key)>>k.stripeShift]
}

// Set sets the value of key, and its deadline to d from now. For a pending key, Set
// replaces both, and allocates nothing. The callback never runs inside Set, even if d
// is zero or less.
//
// The error is [timer.ErrClosed] or, for a key that is not pending,
// [timer.ErrTooManyPending]. After an error nothing has changed.
func (k *Timers[K, V]) Set(key K, value V, d time.Duration) error {
	_, _, err := k.Swap(key, value, d)
	return err
}

// Swap is like Set, and returns the value that it has replaced. replaced is false if the
// key was not pending.
func (k *Timers[K, V]) Swap(key K, value V, d time.Duration) (previous V, replaced bool, err error) {
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	e, exists := st.entries[key]
	if exists && e.move(now, d) {
		previous, e.value = e.value, value
		st.entries[key] = e
		delete(st.loads, key)
		return previous, true, nil
	}
	return previous, false, k.addLocked(st, now, key, value, d)
}

// SetIfAbsent is like Set, for a key that is not pending. If the key is pending,
// SetIfAbsent reports false and changes nothing.
func (k *Timers[K, V]) SetIfAbsent(key K, value V, d time.Duration) (set bool, err error) {
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	if e, exists := st.entries[key]; exists && e.isPending(now) {
		return false, nil
	}
	err = k.addLocked(st, now, key, value, d)
	return err == nil, err
}

// addLocked adds an entry for a key that is not pending, and starts its timer.
func (k *Timers[K, V]) addLocked(st *stripe[K, V], now int64, key K, value V, d time.Duration) error {
	h, err := k.s.Start(d, func() { k.runCallback(key) })
	if err != nil {
		return err
	}
	if expired, exists := st.entries[key]; exists { // its callback has not begun
		if st.late == nil {
			st.late = make(map[K][]V)
		}
		st.late[key] = append(st.late[key], expired.value)
	}
	if st.entries == nil {
		st.entries = make(map[K]entry[V])
	}
	st.entries[key] = entry[V]{value, deadlineAfter(now, d), h}
	st.peak = max(st.peak, len(st.entries))
	delete(st.loads, key)
	return nil
}

// deadlineAfter returns now plus d, or the last possible deadline if that overflows.
func deadlineAfter(now int64, d time.Duration) int64 {
	if d > time.Duration(math.MaxInt64-now) {
		return math.MaxInt64
	}
	return now + int64(max(d, 0))
}

// isPending reports whether the entry's deadline has not passed.
func (e *entry[V]) isPending(now int64) bool { return now < e.deadline }

// move changes the deadline of an entry. It reports false if the entry is not pending.
func (e *entry[V]) move(now int64, d time.Duration) bool {
	if !e.isPending(now) || !e.handle.Move(d) {
		return false
	}
	e.deadline = deadlineAfter(now, d)
	return true
}

// Move changes the deadline of key to d from now, and keeps the value. It reports false
// if the key is not pending. It allocates nothing.
func (k *Timers[K, V]) Move(key K, d time.Duration) bool {
	_, ok := k.GetAndMove(key, d)
	return ok
}

// GetAndMove is Get and Move in one step: it returns the value of key, and changes the
// deadline to d from now. It reports false if the key is not pending.
func (k *Timers[K, V]) GetAndMove(key K, d time.Duration) (value V, ok bool) {
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	e, exists := st.entries[key]
	if !exists || !e.move(now, d) {
		return value, false
	}
	st.entries[key] = e
	return e.value, true
}

// Remove removes key, so that its callback will not run, and returns the value. It
// reports false if the key is not pending.
func (k *Timers[K, V]) Remove(key K) (V, bool) {
	return k.removeIf(key, func(entry[V]) bool { return true })
}

// removeIf is like Remove, but removes the entry only if the condition is true for it.
func (k *Timers[K, V]) removeIf(key K, condition func(entry[V]) bool) (value V, removed bool) {
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.loads, key)
	e, exists := st.entries[key]
	if !exists || !e.isPending(now) || !condition(e) || !e.handle.Stop() {
		return value, false
	}
	st.deleteLocked(key)
	return e.value, true
}

// deleteLocked deletes an entry. A Go map never shrinks, so deleteLocked makes a new one
// if less than a quarter of it is in use. A map of up to 16 keys stays.
func (st *stripe[K, V]) deleteLocked(key K) {
	delete(st.entries, key)
	if n := len(st.entries); st.peak > 16 && n < st.peak/4 {
		entries := make(map[K]entry[V], n)
		maps.Copy(entries, st.entries)
		st.entries, st.peak = entries, n
	}
}

// Get returns the value of key. It reports false if the key is not pending.
func (k *Timers[K, V]) Get(key K) (V, bool) {
	e, ok := k.find(key)
	return e.value, ok
}

// Deadline returns the deadline of key, on the Scheduler's clock. It reports false if
// the key is not pending.
func (k *Timers[K, V]) Deadline(key K) (at time.Time, ok bool) {
	e, ok := k.find(key)
	if ok {
		at = k.timeOf(e)
	}
	return at, ok
}

func (k *Timers[K, V]) find(key K) (e entry[V], ok bool) {
	now := k.nanosSinceStart()
	st := k.stripeOf(key)
	st.mu.Lock()
	defer st.mu.Unlock()
	if e, ok = st.entries[key]; ok && e.isPending(now) {
		return e, true
	}
	return entry[V]{}, false
}

func (k *Timers[K, V]) timeOf(e entry[V]) time.Time {
	return k.startTime.Add(time.Duration(e.deadline))
}

// Len returns the number of keys. Unlike other methods, Len still counts a key whose
// deadline has passed, until its callback begins: usually for at most a tick of the
// Scheduler. It takes O(GOMAXPROCS).
func (k *Timers[K, V]) Len() int {
	k.mustBeMade()
	n := 0
	for i := range k.stripes {
		st := &k.stripes[i]
		st.mu.Lock()
		n += len(st.entries)
		st.mu.Unlock()
	}
	return n
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
		for i := range k.stripes {
			st := &k.stripes[i]
			items = items[:0]
			now := k.nanosSinceStart()
			st.mu.Lock()
			for key, e := range st.entries {
				if e.isPending(now) {
					items = append(items, Item[K, V]{key, e.value, k.timeOf(e)})
				}
			}
			st.mu.Unlock()
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
		hasSameDeadline := func(e entry[V]) bool { return k.timeOf(e).Equal(item.Deadline) }
		if value, ok := k.removeIf(item.Key, hasSameDeadline); ok {
			n++
			f(item.Key, value)
		}
	}
	return n
}

// runCallback is called when a timer of the key fires.
func (k *Timers[K, V]) runCallback(key K) {
	st := k.stripeOf(key)
	st.mu.Lock()
	value, ok := st.takeExpiredLocked(key)
	st.mu.Unlock()
	if ok { // false if the Func of a timer from TakeLeftover is called twice
		k.f(key, value)
	}
}

// takeExpiredLocked removes and returns the key's oldest value.
func (st *stripe[K, V]) takeExpiredLocked(key K) (value V, ok bool) {
	values := st.late[key]
	if len(values) == 0 {
		e, exists := st.entries[key]
		st.deleteLocked(key)
		return e.value, exists
	}
	value = values[0]
	if values = slices.Delete(values, 0, 1); len(values) > 0 {
		st.late[key] = values
	} else if delete(st.late, key); len(st.late) == 0 {
		st.late = nil
	}
	return value, true
}
