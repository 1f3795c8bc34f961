package timingwheel

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// MaxSize is the largest number of slots of a level.
const MaxSize = 1 << 15

// MaxPhase is the largest phase of a wheel, in ticks.
const MaxPhase = 1 << 40

// Errors that [New] returns.
var (
	ErrTick  = errors.New("timingwheel: the tick must be positive")
	ErrSize  = errors.New("timingwheel: the wheel size must be a power of two, from 2 to 32768")
	ErrStart = errors.New("timingwheel: the start must not be negative")
)

// An ID identifies an entry of a wheel until the entry is handed out or removed. IDs are
// comparable. The zero ID identifies no entry.
type ID = bucket.Ref

// Expired is an entry that a wheel has handed out.
type Expired[T any] struct {
	Value    T
	Deadline int64 // as given to Add or Move, not rounded
	// Due is the Deadline. For an entry with slack it may be later, by at most the slack.
	Due int64
	Tag uint8 // as given to AddTagged
}

// A Wheel stores entries with values of type T until they are due. Make one with [New].
type Wheel[T any] struct {
	// Fields that every call needs come first, so that they share few cache lines.

	converter tickConverter

	// slotBits is log2 of the number of slots a level. slotMask is that number minus one.
	slotBits uint
	slotMask uint32

	// clockTick is the wheel's time in ticks. It moves when a bucket expires, and in
	// Advance and Observe, but not past a queued bucket.
	clockTick int64
	// Observe does nothing before time observeFrom.
	observeFrom int64
	// nextExpiration is the earliest expiration of a queued bucket, or math.MaxInt64 if
	// none is queued.
	nextExpiration int64
	// levels[n] is level n. A level is made when it is first needed, so an unused wheel
	// has no memory for entries or buckets.
	levels []level

	arena bucket.Arena[T]

	// If the distance from the clock to a deadline has n bits, the deadline's level is
	// firstLevelByBits[n] or the next higher one.
	firstLevelByBits [64]uint8

	offerBucket func(b bucket.Bucket, place uint32, expiration int64)

	cascadeCount uint64 // see Cascaded
}

// An Option configures a wheel made by [New].
type Option interface{ apply(*options) }

type option func(*options)

func (f option) apply(o *options) { f(o) }

type options struct {
	offerBucket func(b bucket.Bucket, place uint32, expiration int64)
	phase       int64
}

// WithPhase makes the slots of upper levels begin the given number of ticks earlier. The
// default is 0. If several wheels have different phases, their slots do not all expire at
// the same moment. WithPhase panics unless ticks is from 0 to [MaxPhase].
func WithPhase(ticks int64) Option {
	if ticks < 0 || ticks > MaxPhase {
		panic(fmt.Sprintf("timingwheel: WithPhase: the phase must be from 0 to %d ticks, got %d", int64(MaxPhase), ticks))
	}
	return option(func(o *options) { o.phase = ticks })
}

// WithQueue makes the wheel offer its buckets to a queue of the caller. For each bucket,
// in the order of expirations, the caller must call [Wheel.Expire] and then
// [Wheel.Drain]. It must not call [Wheel.Advance].
//
// The wheel offers a bucket when the first entry is put into it. place is the number of
// the bucket's slot, counted through all levels. The wheel may offer a bucket again if
// its place is at least the wheel's size, so above level 0: with an earlier expiration,
// which replaces the previous one.
//
// offer must not call the wheel. A [bucket.Bucket] is a number by which queue and wheel name
// the same slot, so package timer keeps it in its delay queue and the wheel keeps the entries.
func WithQueue(offer func(b bucket.Bucket, place uint32, expiration int64)) Option {
	return option(func(o *options) { o.offerBucket = offer })
}

// New returns an empty wheel whose time is start. tick is the length of a slot of the
// lowest level, in the caller's unit of time. size is the number of slots of every level,
// a power of two from 2 to [MaxSize].
func New[T any](tick int64, size int, start int64, opts ...Option) (*Wheel[T], error) {
	switch {
	case tick <= 0:
		return nil, fmt.Errorf("%w, got %d", ErrTick, tick)
	case size < 2 || size > MaxSize || size&(size-1) != 0:
		return nil, fmt.Errorf("%w, got %d", ErrSize, size)
	case start < 0:
		return nil, fmt.Errorf("%w, got %d", ErrStart, start)
	}
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	w := &Wheel[T]{
		converter:      newTickConverter(tick, o.phase),
		slotBits:       uint(bits.TrailingZeros(uint(size))),
		slotMask:       uint32(size - 1),
		nextExpiration: math.MaxInt64,
		offerBucket:    o.offerBucket,
	}
	for n := range w.firstLevelByBits {
		w.firstLevelByBits[n] = uint8(max(n-1, 0) / int(w.slotBits))
	}
	w.clockTick = w.converter.floorTick(start)
	return w, nil
}

// Len returns the number of entries in the wheel.
func (w *Wheel[T]) Len() int { return w.arena.Len() }

// Levels returns the number of levels that have been made.
func (w *Wheel[T]) Levels() int { return len(w.levels) }

// Cascaded returns how often an entry has moved to a lower level, because its bucket
// expired before the entry was due.
func (w *Wheel[T]) Cascaded() uint64 { return w.cascadeCount }

// Chunks returns the number of memory chunks for entries. A chunk has room for
// [bucket.ChunkSize] entries.
func (w *Wheel[T]) Chunks() int { return w.arena.Chunks() }

// Release gives back all memory for entries, buckets and levels. The wheel stays usable.
// Old IDs stay stale. Expire does nothing for a bucket that the caller has queued before
// Release.
//
// Release does nothing and reports false if the wheel has entries. It also refuses after
// 2^35 uses of one entry's memory: see [bucket.Arena.Release].
func (w *Wheel[T]) Release() bool {
	if !w.arena.Release() {
		return false
	}
	w.levels, w.nextExpiration = nil, math.MaxInt64
	return true
}

// Clock returns the wheel's time, rounded down to a tick. No queued bucket expires before
// that time, unless Expire was called out of order.
func (w *Wheel[T]) Clock() int64 { return w.converter.timeOfTick(w.clockTick) }

// Add puts v into the wheel, to be handed out at deadline. It reports false and stores
// nothing if deadline, rounded up to a tick, is not after the wheel's clock.
func (w *Wheel[T]) Add(deadline int64, v T) (ID, bool) { return w.AddTagged(deadline, 0, v, 0) }

// AddWithin is like Add, for an entry that may be handed out up to slack after its
// deadline. Entries with slack share ticks, which saves wake-ups. For example, entries
// with a slack of 100 ticks share every 96th tick.
//
// If there is no tick from deadline to deadline+slack, the slack has no effect.
func (w *Wheel[T]) AddWithin(deadline, slack int64, v T) (ID, bool) {
	return w.AddTagged(deadline, slack, v, 0)
}

// AddTagged is like AddWithin, for an entry with a tag, which is handed out with v. The
// tag is at most [bucket.MaxTag].
func (w *Wheel[T]) AddTagged(deadline, slack int64, v T, tag uint8) (ID, bool) {
	grain := w.converter.grainFor(deadline, slack)
	t := w.converter.ceilTick(deadline, grain)
	if t <= w.clockTick {
		return ID{}, false
	}
	b, place := w.queueBucketForTick(t)
	return w.arena.NewIn(b, deadline, v, tag, grain, place), true
}

// mustBeMade panics unless New has made w.
func (w *Wheel[T]) mustBeMade() {
	if w.slotMask == 0 {
		panic("timingwheel: a Wheel that was not made by New")
	}
}

// Remove takes an entry out of the wheel and returns its value. It reports false if the
// entry was already handed out or removed.
func (w *Wheel[T]) Remove(id ID) (v T, ok bool) { return w.arena.Remove(id) }

// Move changes an entry's deadline and removes its slack. It reports false and changes
// nothing if the entry was already handed out or removed, or if the new deadline is
// already due, as for Add. ([Wheel.Deadline] tells the two cases apart.)
//
// Moving a deadline later is fast: the entry stays in its bucket until the bucket
// expires.
func (w *Wheel[T]) Move(id ID, deadline int64) bool { return w.MoveWithin(id, deadline, 0) }

// MoveWithin is like Move, for an entry that may be handed out up to slack after its new
// deadline: see [Wheel.AddWithin].
func (w *Wheel[T]) MoveWithin(id ID, deadline, slack int64) bool {
	i, ok := w.arena.Find(id)
	if !ok {
		return false
	}
	grain := w.converter.grainFor(deadline, slack)
	t := w.converter.ceilTick(deadline, grain)
	if t <= w.clockTick {
		return false
	}
	// The entry may be in a due list, with the place of its old bucket. That is no
	// problem: Drain handles each entry of a due list by its deadline.
	if t < w.arena.Expiration(w.bucketOf(i)) {
		b, place := w.queueBucketForTick(t)
		w.arena.Move(i, b, deadline, grain, place)
		return true
	}
	w.arena.SetDeadline(i, deadline)
	w.arena.SetGrain(i, grain)
	return true
}

// tickOf returns the tick at which entry i is due.
func (w *Wheel[T]) tickOf(i bucket.Index) int64 {
	return w.converter.ceilTick(w.arena.Deadline(i), w.arena.Grain(i))
}

// Deadline returns an entry's deadline. It reports false if id identifies no entry.
func (w *Wheel[T]) Deadline(id ID) (int64, bool) {
	i, ok := w.arena.Find(id)
	if !ok {
		return 0, false
	}
	return w.arena.Deadline(i), true
}

// Tag returns an entry's tag. It reports false if id identifies no entry.
func (w *Wheel[T]) Tag(id ID) (uint8, bool) {
	i, ok := w.arena.Find(id)
	if !ok {
		return 0, false
	}
	return w.arena.Tag(i), true
}

// Observe moves the wheel's clock to now, unless a queued bucket expires by then or a
// drain is unfinished. It hands out no entry.
//
// Call Observe before Add. Otherwise, after an idle time, the wheel puts a near deadline
// into a high level, and the entry must move down level by level.
func (w *Wheel[T]) Observe(now int64) {
	if now < w.observeFrom {
		return
	}
	t := w.converter.floorTick(now)
	if t > w.clockTick && t < w.nextExpiration && !w.isDraining() {
		w.clockTick = t
		// Later calls do nothing until size/8 more ticks have passed. Moving the clock at
		// every call would cost more than letting it lag.
		w.observeFrom = w.converter.timeOfTick(t + int64(w.slotMask+1)/8)
	}
}

// Next returns a time before which no entry is due. Perhaps none is due at that time
// either: the wheel may only have to move entries down a level. While a drain is
// unfinished, Next returns the wheel's clock. Next reports false if the drain is finished
// and no entry is due before math.MaxInt64.
func (w *Wheel[T]) Next() (int64, bool) {
	if w.isDraining() {
		return w.Clock(), true
	}
	next := w.converter.timeOfTick(w.nextExpiration)
	return next, next != math.MaxInt64
}

// Draining returns the lowest level with entries for Drain to process, or false if there
// are none. Entries at level 0 are due. Entries at a higher level are due or move down.
func (w *Wheel[T]) Draining() (level int, ok bool) {
	for n := range w.levels {
		if !w.arena.Empty(w.levels[n].dueList) {
			return n, true
		}
	}
	return 0, false
}

// isDraining reports whether any level has entries for Drain to process.
func (w *Wheel[T]) isDraining() bool {
	_, ok := w.Draining()
	return ok
}
