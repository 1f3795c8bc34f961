package timer

import (
	"time"
	"unsafe"
)

// payload is what the wheel keeps for a pending timer: one pointer, whose kind
// is the entry's tag. An interface would take two words a timer, and a closure
// for every kind an allocation a timer. A func value, a channel and a *node each
// are a single pointer that the garbage collector follows.
type payload struct{ p unsafe.Pointer }

const (
	// tagFunc: a func() for the executor.
	tagFunc = iota
	// tagChan: a chan time.Time, to be sent the time without blocking.
	tagChan
	// tagNode: a *node, for all that has more to do.
	tagNode
	// tagTimer: a *Timer that has been reset.
	tagTimer
	// tagLimited: tagFunc, of Start with WithMaxPending.
	tagLimited
)

// untag returns the tag of a timer that has left the limit.
func untag(tag uint8) uint8 {
	if tag == tagLimited {
		return tagFunc
	}
	return tag
}

func funcPayload(f func()) payload { return payload{*(*unsafe.Pointer)(unsafe.Pointer(&f))} }

func (p payload) fn() func() { return *(*func())(unsafe.Pointer(&p.p)) }

func chanPayload(c chan time.Time) payload {
	return payload{*(*unsafe.Pointer)(unsafe.Pointer(&c))}
}

func (p payload) channel() chan time.Time { return *(*chan time.Time)(unsafe.Pointer(&p.p)) }

func timePayload(t *time.Timer) payload { return payload{unsafe.Pointer(t)} }

func (p payload) timeTimer() *time.Timer { return (*time.Timer)(p.p) }

func timerPayload(t *Timer) payload { return payload{unsafe.Pointer(t)} }

func (p payload) timer() *Timer { return (*Timer)(p.p) }

func nodePayload(n *node) payload { return payload{unsafe.Pointer(n)} }

func (p payload) node() *node { return (*node)(p.p) }

// A node is a pending timer that does something of its own when it fires. What
// embeds it sets owner.
type node struct{ owner owner }

type owner interface {
	// expireLocked is called once the timer has been taken out of the wheel,
	// with its shard's lock held, and counted as fired. It must not block, and
	// must run no code of the user's: it returns that, or nil, for the executor.
	expireLocked(sh *shard, at moment) func()
	// pendingFunc returns what Close hands back for the timer, or nil.
	pendingFunc() func()
	// abandon is called, without a lock, when Close has taken the timer out.
	abandon()
}

// moment is a reading of the scheduler's clock.
type moment struct {
	now  int64     // nanoseconds since the scheduler's epoch
	time time.Time // the same, for those who are sent it
}

// sendTime does what package time's timers do on firing: the value is dropped
// if the last one was not yet received.
func sendTime(c chan time.Time, t time.Time) {
	select {
	case c <- t:
	default:
	}
}
