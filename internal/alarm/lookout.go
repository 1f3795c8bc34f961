package alarm

import "runtime"

// A lookout is a timerfd for which a thread waits in a system call, and not in the network
// poller. It is set for up to lookoutAfter after the descriptor's moment.
//
// When a descriptor's goroutine begins to run, the runtime wakes no second thread. So while
// a function computes, all other threads may sleep although a proc is idle. Then no thread
// sees for 10 to 20 ms that the other descriptor or a timer is due. The lookout's thread
// takes the idle proc and rings. If no proc is idle, a guard rings earlier.
type lookout struct {
	hub    *hub
	fd     int
	closed chan struct{} // closed when the goroutine has ended

	// The hub's lock guards the fields below.

	targetMoment int64 // the moment that the timerfd is set for, or never
	mustClose    bool
}

// openLookout returns a lookout, or nil if the system refuses one. With a single proc a
// lookout would be useless.
func (h *hub) openLookout() *lookout {
	if runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	fd, ok := newBlockingTimerfd()
	if !ok {
		return nil
	}
	l := &lookout{hub: h, fd: fd, closed: make(chan struct{}), targetMoment: never}
	go h.wait(l.ringWhenExpired)
	return l
}

// setFor sets the lookout for a descriptor that is set for moment at. The caller holds the
// hub's lock.
func (l *lookout) setFor(now, at int64) {
	if l == nil || at+lookoutAfter/2 <= l.targetMoment && l.targetMoment <= at+lookoutAfter {
		return
	}
	l.targetMoment = at + lookoutAfter
	setTimerfd(uintptr(l.fd), l.targetMoment-now)
}

// ringWhenExpired runs on the lookout's goroutine.
func (l *lookout) ringWhenExpired() {
	defer close(l.closed)
	defer closeTimerfd(l.fd)
	h := l.hub
	for {
		awaitTimerfd(l.fd)
		h.mu.Lock()
		if l.mustClose {
			h.mu.Unlock()
			return
		}
		l.targetMoment = never
		now := h.now()
		switch first := h.firstMomentLocked(); {
		case h.armedDescriptor == nil:
			h.mu.Unlock()
		case first > now:
			l.setFor(now, h.armedMoment)
			h.mu.Unlock()
		default:
			go h.wait(h.ringAndUnlock(now, first)) // only the function runs on the new goroutine
			// Let the function run first: a thread that blocks keeps its proc for up to 10 ms.
			runtime.Gosched()
		}
	}
}

// close ends the lookout's goroutine, and waits for its end.
func (l *lookout) close() {
	l.hub.mu.Lock()
	l.mustClose = true
	setTimerfd(uintptr(l.fd), 1)
	l.hub.mu.Unlock()
	<-l.closed
}
