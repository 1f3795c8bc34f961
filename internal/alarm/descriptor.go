package alarm

import (
	"context"
	"os"
	"runtime/pprof"
	"syscall"

	"go.uber.org/atomic"
)

// A descriptor is a timerfd, and a goroutine that waits through the runtime's network
// poller until that becomes readable.
//
// Nothing is ever read from the timerfd. The network poller is edge-triggered, and
// setting the timerfd again makes it unreadable, so every expiry is an edge. One that
// comes before the goroutine waits is found by looking at the clock: see wait.
type descriptor struct {
	file *os.File
	raw  syscall.RawConn
	fd   uintptr
	at   atomic.Int64 // what it is set for, or never; stored under the hub's lock
}

// openLocked opens the descriptor, if there is none. It reports false if there is none to be
// had: then it is tried again with the next ring.
func (h *hub) openLocked() bool {
	if h.fd != nil {
		return true
	}
	file := newTimerfd()
	if file == nil {
		return false
	}
	d := &descriptor{file: file}
	d.at.Store(never)
	d.raw, _ = file.SyscallConn() // fails for a nil file alone
	d.raw.Control(func(fd uintptr) { d.fd = fd })
	h.fd = d
	go h.wait(d)
	return true
}

// wait waits and rings until the descriptor is closed, or an alarm's function ends the
// goroutine: then the guard rings next.
func (h *hub) wait(d *descriptor) {
	pprof.SetGoroutineLabels(context.Background()) // not those of the goroutine that has set the alarm
	asked := false
	isReadable := func(uintptr) bool {
		if asked {
			return true // the network poller says so
		}
		asked = true
		// From here on an edge is not missed. One that came before belongs to a
		// moment that has passed.
		return d.at.Load() <= h.now()
	}
	for {
		asked = false
		d.raw.Read(isReadable) // an error says that the file is closed
		now := h.now()
		h.mu.Lock()
		switch {
		case h.fd != d:
			h.mu.Unlock()
			return
		case d.at.Load() > now || h.firstLocked() > now:
			h.armLocked(now) // what it was set for has been moved or stopped
			h.mu.Unlock()
		default:
			h.ringLocked(now, d.at.Load())()
		}
	}
}

// set sets it for a moment, with the hub's lock held.
func (d *descriptor) set(now, at int64) {
	d.at.Store(at)
	setTimerfd(d.fd, at-now)
}
