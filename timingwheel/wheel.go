package timingwheel

import (
	"github.com/tickless/tickless/internal/slab"
	"github.com/tickless/tickless/internal/wheel"
)

// MaxSize is the largest number of slots a level can have.
const MaxSize = wheel.MaxSize

// Errors of [New].
var (
	ErrTick  = wheel.ErrTick
	ErrSize  = wheel.ErrSize
	ErrStart = wheel.ErrStart
)

// An ID names an entry of a wheel, from Add until the entry is handed out or removed. It
// is comparable; the zero ID names nothing.
type ID struct{ ref slab.Ref }

// Expired is an entry that a wheel has handed out.
type Expired[T any] struct {
	Value    T
	Deadline int64 // as given to Add or Move, not rounded
	// Due is the moment in its window at which the entry was to be handed out. It is
	// Deadline for one without slack.
	Due int64
}

// A Wheel keeps entries of type T until they are due. Make one with [New]. See the
// package comment for how, and for what an ID, a tick and a time are.
type Wheel[T any] struct {
	w *wheel.Wheel[T]
	// out is what Advance has the wheel hand out into.
	out []wheel.Expired[T]
}

// New returns an empty wheel whose time is start. tick is the length of a slot of the
// lowest level, in the caller's unit of time, and size the number of slots of every
// level, a power of two from 2 to [MaxSize].
func New[T any](tick int64, size int, start int64) (*Wheel[T], error) {
	w, err := wheel.New[T](tick, size, start)
	if err != nil {
		return nil, err
	}
	return &Wheel[T]{w: w}, nil
}

// wheel returns what New has made.
func (w *Wheel[T]) wheel() *wheel.Wheel[T] {
	if w.w == nil {
		panic("timingwheel: a Wheel that was not made by New")
	}
	return w.w
}

// Add puts v into the wheel, to be handed out once the time has reached deadline. It
// reports false, and keeps nothing, if the deadline, rounded up to a tick, is not after
// the wheel's clock: v is due already.
func (w *Wheel[T]) Add(deadline int64, v T) (ID, bool) {
	ref, ok := w.wheel().Add(deadline, v)
	return ID{ref}, ok
}

// AddWithin is Add for an entry that may be handed out as late as slack after its
// deadline. It is due at the tick from deadline to deadline+slack that is a multiple of
// the largest power of two, up to 2^20, counted from time 0: so entries whose windows
// overlap are due at few moments. (Linux's timers with slack and libdispatch's with
// leeway do so.) For a slack from 1.5 times a power of two to twice that, below 2^11
// ticks, it is three times a power of two instead, up to 3*2^9: a slack of 100 ticks has
// moments every 96, not 64. Without a tick in the window it is as without slack.
func (w *Wheel[T]) AddWithin(deadline, slack int64, v T) (ID, bool) {
	ref, ok := w.wheel().AddWithin(deadline, slack, v, 0)
	return ID{ref}, ok
}

// Remove takes an entry out and returns its payload. It reports false if the entry was
// handed out or removed before.
func (w *Wheel[T]) Remove(id ID) (v T, ok bool) { return w.wheel().Remove(id.ref) }

// Move changes an entry's deadline. It reports false, and changes nothing, if the entry
// was handed out or removed before, or if the new deadline is due already as for Add
// ([Wheel.Contains] tells the two apart). The entry has no slack afterwards.
//
// An entry whose new deadline is not before its slot expires stays where it is until
// then. So moving a deadline later, again and again, touches only the entry itself.
func (w *Wheel[T]) Move(id ID, deadline int64) bool { return w.wheel().Move(id.ref, deadline) }

// MoveWithin is Move for an entry that may be handed out as late as slack after its new
// deadline: see [Wheel.AddWithin].
func (w *Wheel[T]) MoveWithin(id ID, deadline, slack int64) bool {
	return w.wheel().MoveWithin(id.ref, deadline, slack)
}

// Contains reports whether id names an entry of the wheel.
func (w *Wheel[T]) Contains(id ID) bool { return w.wheel().Contains(id.ref) }

// Deadline returns an entry's deadline, or false if id names no entry.
func (w *Wheel[T]) Deadline(id ID) (int64, bool) { return w.wheel().Deadline(id.ref) }

// Len returns the number of entries in the wheel.
func (w *Wheel[T]) Len() int { return w.wheel().Len() }

// Each calls f for every entry, in no order. f must not call the wheel.
func (w *Wheel[T]) Each(f func(id ID, e Expired[T])) {
	w.wheel().Scan(0, int(w.w.Places()), func(e wheel.Entry[T]) { f(ID{e.ID}, expired(e.Expired)) })
}

// Clock returns the wheel's time, rounded down to a tick.
func (w *Wheel[T]) Clock() int64 { return w.wheel().Clock() }

// Next returns a time before which no entry is due, or false if there is none to wait
// for. While an Advance is unfinished it is the wheel's clock. An Advance to that time
// may find entries that only have to go down a level, or, after removals, none.
func (w *Wheel[T]) Next() (int64, bool) { return w.wheel().Next() }

// Observe tells the wheel the time, so that what is added next is placed from there. It
// hands nothing out and passes nothing that is due. Without it a wheel that was idle
// would place a near deadline in a high level, from where it would have to come down
// step by step.
func (w *Wheel[T]) Observe(now int64) { w.wheel().Observe(now) }

// Advance moves the wheel to the time now, of which a negative one counts as 0, and hands
// out what has become due, in the order of ticks: into out[:n], looking at no more than
// len(out) entries. While it reports more, there is more to do for the same now: call it
// again. A now before the wheel's clock hands out nothing new. It panics if out is empty.
// An entry whose rounded-up deadline is beyond math.MaxInt64 is never handed out.
func (w *Wheel[T]) Advance(now int64, out []Expired[T]) (n int, more bool) {
	if cap(w.out) < len(out) {
		w.out = make([]wheel.Expired[T], len(out))
	}
	buf := w.out[:len(out)]
	n, more = w.wheel().Advance(now, buf)
	for i := range buf[:n] {
		out[i] = expired(buf[i])
	}
	clear(buf[:n])
	return n, more
}

func expired[T any](e wheel.Expired[T]) Expired[T] { return Expired[T]{e.Value, e.Deadline, e.Due} }

// Release gives back all memory, which is made again when it is needed. IDs stay what
// they are: they name nothing. It reports false, and does nothing, if there are entries,
// if a slot has yet to expire whose entries were removed, or if IDs have used up half of
// what there is of them.
func (w *Wheel[T]) Release() bool {
	if !w.wheel().Release() {
		return false
	}
	w.out = nil
	return true
}
