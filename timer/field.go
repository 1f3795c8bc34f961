package timer

import "unsafe"

// Init makes of t, which is usually a field of arg's, a Timer of s's that calls
// f(arg) when it expires, on the Scheduler's executor. It is not started: Reset does
// that, and Stop stops it, as often as one likes. Neither Init nor they allocate
// anything, unless the Timer falls back: see [WithMaxPending].
//
//	type conn struct {
//		timeout timer.Timer
//		...
//	}
//
//	timer.Init(&c.timeout, s, (*conn).close, c)
//	c.timeout.Reset(30 * time.Second)
//
// The Timer's address is what is pending: it must not be copied, and what it lies in
// is not garbage while it is pending. Init must not be called on a Timer that may be
// pending. It panics if s, f or arg is nil.
func Init[T any](t *Timer, s *Scheduler, f func(*T), arg *T) {
	if s == nil || f == nil || arg == nil {
		panic("timer: Init with a nil Scheduler, func or argument")
	}
	sh := s.lockShard()
	sh.mu.Unlock()
	// What a pointer points to is nothing to its caller: a func(*T) is called as a
	// func(unsafe.Pointer).
	*t = Timer{sh: sh, p: payload{*(*unsafe.Pointer)(unsafe.Pointer(&f))}, arg: unsafe.Pointer(arg), tag: tagArg}
}
