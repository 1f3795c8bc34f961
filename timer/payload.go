package timer

import (
	"time"
	"unsafe"
)

// payload is what the wheel keeps for a pending timer: one pointer, of which the entry's tag
// tells the type. An interface would take two words a timer, and a closure for every type an
// allocation a timer. A func value, a channel and a pointer to a struct each are a single
// pointer that the garbage collector follows.
type payload struct{ p unsafe.Pointer }

const (
	// tagFunc: a func() for the executor.
	tagFunc = iota
	// tagLimited: tagFunc, of Start with WithMaxPending.
	tagLimited
	// tagChan: a chan time.Time, to be sent the time without blocking.
	tagChan
	// tagTicker: a *Ticker.
	tagTicker
	// tagTimer: a *Timer that has been reset.
	tagTimer
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

func tickerPayload(t *Ticker) payload { return payload{unsafe.Pointer(t)} }

func (p payload) ticker() *Ticker { return (*Ticker)(p.p) }

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
