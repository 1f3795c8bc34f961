package timer

import "unsafe"

// Init makes t, which is usually a field of arg, a Timer on s that calls f(arg) on
// the Scheduler's executor when it expires. Init does not start it: Reset does, and
// Stop stops it, as often as one likes. None of the three allocates anything, unless
// the Timer falls back: see [WithMaxPending].
//
//	type conn struct {
//		timeout timer.Timer
//		...
//	}
//
//	timer.Init(&c.timeout, s, (*conn).close, c)
//	c.timeout.Reset(30 * time.Second)
//
// A pending Timer is known by its address: it must not be copied, and the struct that
// holds it is not garbage while it is pending. Init must not be called on a Timer
// that may be pending. It panics if s, f or arg is nil.
func Init[T any](t *Timer, s *Scheduler, f func(*T), arg *T) {
	if s == nil || f == nil || arg == nil {
		panic("timer: Init with a nil Scheduler, func or argument")
	}
	s.mustBeMade()
	sh := s.lockShard()
	sh.mu.Unlock()
	// What a pointer points to is nothing to its caller: a func(*T) is called as a
	// func(unsafe.Pointer).
	*t = Timer{sh: sh, p: payload{*(*unsafe.Pointer)(unsafe.Pointer(&f))}, arg: unsafe.Pointer(arg), tag: tagArg}
}
