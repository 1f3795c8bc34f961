package timer

import (
	"time"
	"unsafe"
)

// payload is what an entry in the wheel holds for a timer: a pointer. The entry's tag
// determines its type. An interface would take twice the memory.
type payload struct{ ptr unsafe.Pointer }

const (
	// tagFunc: a func() for the executor.
	tagFunc = iota
	// tagLimited: like tagFunc, for a timer that counts against the limit of
	// WithMaxPending.
	tagLimited
	// tagChan: a chan time.Time, on which the time is sent without blocking.
	tagChan
	// tagTicker: a *Ticker.
	tagTicker
	// tagTimer: a *Timer that has been reset.
	tagTimer
)

// tagWithoutLimit returns tag, or tagFunc instead of tagLimited.
func tagWithoutLimit(tag uint8) uint8 {
	if tag == tagLimited {
		return tagFunc
	}
	return tag
}

func funcPayload(f func()) payload { return payload{*(*unsafe.Pointer)(unsafe.Pointer(&f))} }

func (p payload) callback() func() { return *(*func())(unsafe.Pointer(&p.ptr)) }

func chanPayload(c chan time.Time) payload {
	return payload{*(*unsafe.Pointer)(unsafe.Pointer(&c))}
}

func (p payload) channel() chan time.Time { return *(*chan time.Time)(unsafe.Pointer(&p.ptr)) }

func stdTimerPayload(t *time.Timer) payload { return payload{unsafe.Pointer(t)} }

func (p payload) stdTimer() *time.Timer { return (*time.Timer)(p.ptr) }

func timerPayload(t *Timer) payload { return payload{unsafe.Pointer(t)} }

func (p payload) timer() *Timer { return (*Timer)(p.ptr) }

func tickerPayload(t *Ticker) payload { return payload{unsafe.Pointer(t)} }

func (p payload) ticker() *Ticker { return (*Ticker)(p.ptr) }

// moment is a reading of the scheduler's clock.
type moment struct {
	nanos int64     // nanoseconds since the scheduler's epoch
	time  time.Time // the same as a time.Time, to be sent on channels
}

// sendTime sends t without blocking. If the last value was not received yet, t is
// dropped, as in package time.
func sendTime(c chan time.Time, t time.Time) {
	select {
	case c <- t:
	default:
	}
}
