package timingwheel

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// MaxSize is the largest number of slots a level can have.
const MaxSize = 1 << 15

// MaxPhase is the largest phase a wheel can have, in ticks.
const MaxPhase = 1 << 40

// Errors of [New].
var (
	ErrTick  = errors.New("timingwheel: the tick must be positive")
	ErrSize  = errors.New("timingwheel: the wheel size must be a power of two, from 2 to 32768")
	ErrStart = errors.New("timingwheel: the start must not be negative")
)

// An ID names an entry of a wheel, from Add until the entry is handed out or
// removed. It is comparable; the zero ID names nothing.
type ID = bucket.Ref

// Expired is an entry that a wheel has handed out.
type Expired[T any] struct {
	Value    T
	Deadline int64 // as given to Add or Move, not rounded
	// Due is the moment in its window at which the entry is due. It is Deadline for an
	// entry without slack.
	Due int64
	Tag uint8 // as given to AddTagged
}

// A Wheel keeps entries of type T until they are due. Make one with [New]. See the
// package comment for how, and for what an ID, a tick and a time are.
type Wheel[T any] struct {
	// What every call needs comes first, so that it is in few cache lines.

	ticks ticks

	// slotBits is log2 of the number of slots a level; slotMask that less one.
	slotBits uint
	slotMask uint32

	// clock is the wheel's time in ticks. It moves to a bucket's expiration when the
	// bucket expires. Observe moves it too, but not past a queued bucket: so it does not
	// go stale while the wheel is idle.
	clock int64
	// observe is the time from which on Observe moves the clock again.
	observe int64
	// next is the first expiration of a queued bucket, math.MaxInt64 if none. The clock
	// is not after it.
	next int64
	// levels[n] is level n. Levels are made when first used and kept: a wheel that
	// was never used holds no memory for entries or buckets.
	levels []level

	arena bucket.Arena[T]

	// lowest[n] is the level of a deadline whose distance has n bits, or one
	// less than it.
	lowest [64]uint8

	offer func(b bucket.Bucket, place uint32, expiration int64)

	cascaded uint64
}

// An Option changes how a wheel works.
type Option interface{ apply(*options) }

type option func(*options)

func (f option) apply(o *options) { f(o) }

type options struct {
	offer func(b bucket.Bucket, place uint32, expiration int64)
	phase int64
}

// WithPhase makes the slots of upper levels begin that many ticks earlier. Ticks
// themselves stay where they are. When one goroutine advances several wheels, wheels
// of different phases do not move their entries down at the same moment. The default
// is 0; New panics unless it is from 0 to [MaxPhase].
func WithPhase(ticks int64) Option {
	if ticks < 0 || ticks > MaxPhase {
		panic(fmt.Sprintf("timingwheel: WithPhase: the phase must be from 0 to %d ticks, got %d", int64(MaxPhase), ticks))
	}
	return option(func(o *options) { o.phase = ticks })
}

// WithQueue makes the wheel offer each bucket to a queue when its first entry is
// placed in it, after it was made or has expired. The bucket expires when that entry
// is due. When an entry is placed in it that is due earlier, or so many entries that
// moving them takes a while, the bucket is offered again, with an earlier expiration
// that replaces the one before. A bucket of the lowest level, whose place is less
// than the wheel's size, is never offered again. The owner of the queue calls
// [Wheel.Expire] for the buckets, in the order of their expirations, and
// [Wheel.Drain], in place of [Wheel.Advance]. offer must not call the wheel.
func WithQueue(offer func(b bucket.Bucket, place uint32, expiration int64)) Option {
	return option(func(o *options) { o.offer = offer })
}

// New returns an empty wheel whose time is start. tick is the length of a slot
// of the lowest level, in the caller's unit of time, and size the number of
// slots of every level, a power of two from 2 to [MaxSize].
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
		ticks:    newTicks(tick, o.phase),
		slotBits: uint(bits.TrailingZeros(uint(size))),
		slotMask: uint32(size - 1),
		next:     math.MaxInt64,
		offer:    o.offer,
	}
	for n := range w.lowest {
		w.lowest[n] = uint8(max(n-1, 0) / int(w.slotBits))
	}
	w.clock = w.ticks.floor(start)
	return w, nil
}

// Len returns the number of entries in the wheel.
func (w *Wheel[T]) Len() int { return w.arena.Len() }

// Levels returns the number of levels that were made so far.
func (w *Wheel[T]) Levels() int { return len(w.levels) }

// Cascaded returns how many times an entry was placed again because its bucket
// expired before it was due.
func (w *Wheel[T]) Cascaded() uint64 { return w.cascaded }

// Chunks returns the number of memory chunks that entries are held in, of
// [bucket.ChunkSize] entries each.
func (w *Wheel[T]) Chunks() int { return w.arena.Chunks() }

// Release gives back all memory for entries, buckets and levels, which are made again
// when they are needed. IDs stay what they are: they name nothing. Buckets that are queued
// are not any more; for those that the owner's queue still has, Expire does nothing. Release
// reports false, and does nothing, if there are entries, or if IDs have used up half of what
// there is of them: see [bucket.Arena.Release].
func (w *Wheel[T]) Release() bool {
	if !w.arena.Release() {
		return false
	}
	w.levels, w.next = nil, math.MaxInt64
	return true
}

// Clock returns the wheel's time, rounded down to a tick. No queued bucket
// expires before it.
func (w *Wheel[T]) Clock() int64 { return w.ticks.time(w.clock) }

// Add puts v into the wheel, to be handed out once the time has reached
// deadline. It reports false, and keeps nothing, if the deadline, rounded up to
// a tick, is not after the wheel's clock: v is due already.
func (w *Wheel[T]) Add(deadline int64, v T) (ID, bool) { return w.AddTagged(deadline, 0, v, 0) }

// AddWithin is Add for an entry that may be handed out as late as slack after its
// deadline. It is due at the tick from deadline to deadline+slack that is a multiple of
// the largest power of two, up to 2^20, counted from time 0: so entries whose windows
// overlap are due at few moments. (Linux's timers with slack and libdispatch's with
// leeway do so.) For a slack from 1.5 times a power of two to twice that, below 2^11
// ticks, it is three times a power of two instead, up to 3*2^9: a slack of 100 ticks has
// moments every 96, not 64. Without a tick in the window it is as without slack.
func (w *Wheel[T]) AddWithin(deadline, slack int64, v T) (ID, bool) {
	return w.AddTagged(deadline, slack, v, 0)
}

// AddTagged is AddWithin with a tag, at most [bucket.MaxTag], that comes back with v.
func (w *Wheel[T]) AddTagged(deadline, slack int64, v T, tag uint8) (ID, bool) {
	grain := w.ticks.within(deadline, slack)
	t := w.ticks.ceilTo(deadline, grain)
	if t <= w.clock {
		return ID{}, false
	}
	b, place := w.find(t)
	return w.arena.NewIn(b, deadline, v, tag, grain, place), true
}

// mustBeMade panics unless New has made w.
func (w *Wheel[T]) mustBeMade() {
	if w.slotMask == 0 {
		panic("timingwheel: a Wheel that was not made by New")
	}
}

// Remove takes an entry out and returns its payload. It reports false if the
// entry was handed out or removed before.
func (w *Wheel[T]) Remove(id ID) (v T, ok bool) { return w.arena.Remove(id) }

// Move changes an entry's deadline. It reports false, and changes nothing, if
// the entry was handed out or removed before, or if the new deadline is due
// already as for Add ([Wheel.Contains] tells the two apart).
//
// An entry whose new deadline is not before its bucket expires stays where it is; it
// is placed again when the bucket expires. So moving a deadline later again and again
// touches only the entry itself.
//
// The entry has no slack afterwards.
func (w *Wheel[T]) Move(id ID, deadline int64) bool { return w.MoveWithin(id, deadline, 0) }

// MoveWithin is Move for an entry that may be handed out as late as slack after its
// new deadline: see [Wheel.AddWithin].
func (w *Wheel[T]) MoveWithin(id ID, deadline, slack int64) bool {
	i, ok := w.arena.Find(id)
	if !ok {
		return false
	}
	grain := w.ticks.within(deadline, slack)
	t := w.ticks.ceilTo(deadline, grain)
	if t <= w.clock {
		return false
	}
	w.arena.SetDeadline(i, deadline)
	w.arena.SetGrain(i, grain)
	// An entry in a due list still has the place of the bucket that it was in. If that
	// bucket is not queued again, t is after its expiration, and the entry stays: Drain
	// comes to it. If the bucket is queued again, the entry may stay or be placed again:
	// either is right.
	if t < w.arena.Expiration(w.bucketOf(i)) {
		w.arena.Unlink(i)
		w.place(i, t)
	}
	return true
}

// tickOf returns the tick at which entry i is due.
func (w *Wheel[T]) tickOf(i bucket.Index) int64 {
	return w.ticks.ceilTo(w.arena.Deadline(i), w.arena.Grain(i))
}

// Contains reports whether id names an entry of the wheel.
func (w *Wheel[T]) Contains(id ID) bool {
	_, ok := w.arena.Find(id)
	return ok
}

// Deadline returns an entry's deadline, or false if id names no entry.
func (w *Wheel[T]) Deadline(id ID) (int64, bool) {
	i, ok := w.arena.Find(id)
	if !ok {
		return 0, false
	}
	return w.arena.Deadline(i), true
}

// Tag returns an entry's tag, or false if id names no entry.
func (w *Wheel[T]) Tag(id ID) (uint8, bool) {
	i, ok := w.arena.Find(id)
	if !ok {
		return 0, false
	}
	return w.arena.Tag(i), true
}

// Observe tells the wheel the time, so that what is added next is placed from
// there. It hands nothing out and passes no bucket that is queued. Without it
// a wheel that was idle would place a near deadline in a high level, from where
// it would have to come down step by step.
func (w *Wheel[T]) Observe(now int64) {
	if now < w.observe {
		return
	}
	t := w.ticks.floor(now)
	if t > w.clock && t < w.next && !w.isDraining() {
		w.clock = t
		// An eighth of a turn of the lowest level may pass before a stale clock
		// costs more than looking at the time does.
		w.observe = w.ticks.time(t + int64(w.slotMask+1)/8)
	}
}

// Next returns a time before which no entry is due: the first expiration of a
// queued bucket, or the wheel's clock while a drain is unfinished. It reports
// false if no bucket is queued. The bucket may turn out to hold entries that
// only have to go down a level, or, after removals, none.
func (w *Wheel[T]) Next() (int64, bool) {
	if w.isDraining() {
		return w.Clock(), true
	}
	return w.ticks.time(w.next), w.next != math.MaxInt64 || w.anyQueued()
}

// Draining returns the lowest level whose expired entries are not all worked
// through, or false if all are. At level 0 they are due; at a higher level they are
// to be placed again, lower down. Drain takes those of the lowest level first.
func (w *Wheel[T]) Draining() (level int, ok bool) {
	for n := range w.levels {
		if !w.arena.Empty(w.levels[n].due) {
			return n, true
		}
	}
	return 0, false
}

// isDraining reports whether any level has entries to be drained.
func (w *Wheel[T]) isDraining() bool {
	_, ok := w.Draining()
	return ok
}

// anyQueued tells a bucket that expires at math.MaxInt64 from none at all.
func (w *Wheel[T]) anyQueued() bool {
	for n := range w.levels {
		if _, ok := w.levels[n].nextQueued(0); ok {
			return true
		}
	}
	return false
}
