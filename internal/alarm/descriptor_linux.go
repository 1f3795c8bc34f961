package alarm

import (
	"context"
	"os"
	"runtime/pprof"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A descriptor is a timerfd, and a goroutine that waits through the runtime's network
// poller until it becomes readable. The lock of the hub guards it.
//
// Nothing is ever read from the timerfd. The network poller is edge-triggered, and
// setting the timerfd again makes it unreadable, so every expiry is an edge. One that
// comes before the goroutine waits is found by looking at the clock: see block.
type descriptor struct {
	file   *os.File // nil while there is none
	raw    syscall.RawConn
	fd     int
	waiter *waiter // the goroutine that waits, if there is a timerfd
	held   bool    // it is inside a function
}

// A waiter is a goroutine that waits for a timerfd.
type waiter struct{ raw syscall.RawConn }

// A closer is a timerfd that was taken, or nil.
type closer struct{ file *os.File }

// close waits until nobody reads, so it must be called without the lock: the waiter may be
// about to take that, inside its Read.
func (c closer) close() {
	if c.file != nil {
		c.file.Close()
	}
}

func (d *descriptor) isOpen() bool { return d.file != nil }
func (d *descriptor) isHeld() bool { return d.held }

// set sets the timerfd for after t. It cannot fail: the descriptor is open and of the
// right kind.
func (d *descriptor) set(t time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(t, 1)))} // zero would unset it
	// By Syscall the runtime would wake its monitor, if that sleeps.
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(d.fd), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// take takes the timerfd, whose closing ends the waiter.
func (d *descriptor) take() closer {
	file := d.file
	*d = descriptor{}
	return closer{file}
}

// openLocked opens the timerfd, if there is none. It reports false if there is none to be
// had: then it is tried again with the next ring.
func (h *hub) openLocked() bool {
	if h.fd.isOpen() {
		return true
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return false
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	raw, err := file.SyscallConn()
	if err != nil || file.SetReadDeadline(time.Time{}) != nil {
		file.Close() // the network poller does not know it
		return false
	}
	h.fd = descriptor{file: file, raw: raw, fd: fd}
	h.waitLocked()
	return true
}

// waitLocked has a new goroutine wait in place of the one that there may be.
func (h *hub) waitLocked() {
	h.fd.waiter, h.fd.held = &waiter{h.fd.raw}, false
	go h.wait(h.fd.waiter)
}

// wait waits and rings until the descriptor is closed or another waiter has taken over.
func (h *hub) wait(w *waiter) {
	pprof.SetGoroutineLabels(context.Background()) // not those of who has set the alarm
	defer func() {                                 // also if a member's function ends this goroutine
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.fd.waiter == w {
			h.waitLocked()
		}
	}()
	for current := true; current; {
		h.block(w)
		now := h.now()
		h.mu.Lock()
		if h.fd.waiter == w && h.fdAt <= now {
			h.rangLocked(now, false)
			if h.set.first() <= now {
				h.fd.held = true
				h.call(h.ringLocked(now))
				h.mu.Lock()
				h.fd.held = h.fd.held && h.fd.waiter != w
			} else {
				h.armLocked(now) // what it was armed for is gone: see settleLocked
			}
		}
		current = h.fd.waiter == w
		h.mu.Unlock()
	}
}

// block blocks until the timerfd expires or the file is closed. It may return for
// nothing.
func (h *hub) block(w *waiter) {
	asked := false
	// The error would say that the file is closed; wait sees that for itself.
	w.raw.Read(func(uintptr) bool {
		if asked {
			return true // readable
		}
		asked = true
		// From here on an edge is not missed. One that came before belongs to a
		// moment that has passed.
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.fd.waiter != w || h.fdAt <= h.now()
	})
}
