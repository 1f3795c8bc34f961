package alarm

import (
	"context"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is what makes the hub exact: a timerfd, and a goroutine that waits until
// it becomes readable, through the runtime's network poller. The lock of the hub
// guards it.
//
// Nothing is ever read from the timerfd. The network poller is edge-triggered, and
// setting the timerfd again makes it unreadable, so every expiry is an edge. One that
// comes before the goroutine waits is found by looking at the clock: see block.
type descriptor struct {
	// file is the timerfd, nil while there is none.
	file *os.File
	raw  syscall.RawConn
	// waiter is the one that waits, nil while there is no timerfd; waiters has it, and
	// those before it that have yet to end.
	waiter  *waiter
	waiters []*waiter
}

// A waiter is a goroutine that waits for a timerfd.
type waiter struct {
	raw syscall.RawConn
	// inside: it calls a member's function, which is part of what the closing of that
	// member waits for, or what comes after that. The end of the waiter, if it is about to
	// end, is of what that of closers does.
	inside  bool
	caller  *member // whose function that is, nil if it is over
	closers []*member
}

func (d *descriptor) isOpen() bool { return d.file != nil }

// set sets the timerfd for after t. It cannot fail: the descriptor is open and of the
// right kind.
func (d *descriptor) set(t time.Duration) {
	t = max(t, 1) // zero would unset it
	d.raw.Control(func(fd uintptr) {
		unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}, nil)
	})
}

// takeLocked takes the timerfd for the caller to close, which ends the waiter. It
// returns nil if there is none.
func (d *descriptor) takeLocked() io.Closer {
	if d.file == nil {
		return nil
	}
	file := d.file
	d.file, d.raw, d.waiter = nil, nil, nil
	return file
}

// awaitLocked has the closing of m wait for the waiters that are about to end, but for
// those that call functions of others, which may take their time.
func (d *descriptor) awaitLocked(m *member) {
	for _, w := range d.waiters {
		if w != d.waiter && (!w.inside || w.caller == m) {
			w.closers = append(w.closers, m)
			m.left++
		}
	}
}

// openLocked opens the timerfd and starts its waiter, if there is none. It reports
// false if there is no descriptor to be had: then it is tried again with the next
// ring.
func (h *hub) openLocked() bool {
	if h.fd.isOpen() {
		return true
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		h.rings.NoDescriptor++
		return false
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	raw, err := file.SyscallConn()
	if err != nil || file.SetReadDeadline(time.Time{}) != nil {
		h.rings.NoDescriptor++
		file.Close() // the network poller does not know it
		return false
	}
	h.fd.file, h.fd.raw = file, raw
	h.waitLocked()
	return true
}

// replaceLocked has another goroutine wait in place of one that is held up in a
// member's function. It reports false if that is not so.
func (h *hub) replaceLocked() bool {
	held := h.fd.waiter != nil && h.fd.waiter.inside
	if held {
		h.waitLocked()
	}
	return held
}

// waitLocked starts a waiter, in place of one that there may be.
func (h *hub) waitLocked() {
	h.fd.waiter = &waiter{raw: h.fd.raw}
	h.fd.waiters = append(h.fd.waiters, h.fd.waiter)
	go h.wait(h.fd.waiter)
}

// wait waits and rings until the descriptor is closed or another waiter has taken
// over.
func (h *hub) wait(w *waiter) {
	pprof.SetGoroutineLabels(context.Background()) // not those of who has set the alarm
	defer func() {                                 // also if a member's function ends this goroutine
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.fd.waiter == w {
			h.waitLocked()
		}
		i := slices.Index(h.fd.waiters, w)
		h.fd.waiters = slices.Delete(h.fd.waiters, i, i+1)
		for _, m := range w.closers {
			m.leaveLocked()
		}
	}()
	for current := true; current; {
		h.block(w)
		now := h.now()
		h.mu.Lock()
		if h.fd.waiter == w && h.set.first() <= now {
			w.inside, w.caller = true, h.set[0]
			h.rings.ByDescriptor++
			if m := h.ringLocked(now); m.callFirst() {
				h.mu.Lock()
				w.caller = nil // its closing does not wait for this
				if h.fd.waiter == w {
					h.waitLocked()
				}
				h.mu.Unlock()
				m.then()
			}
			h.mu.Lock()
			w.inside, w.caller = false, nil
		} else if h.fd.waiter == w && h.exact && h.armed <= now {
			h.armLocked(now) // what it was armed for is gone: see settleLocked
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
		return h.fd.waiter != w || h.exact && h.armed <= h.now()
	})
}
