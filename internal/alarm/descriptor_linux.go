package alarm

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is what makes the alarm exact: a timerfd, and a goroutine that waits
// until it becomes readable, through the runtime's network poller. The lock of the
// alarm guards it.
//
// Nothing is ever read from the timerfd. The network poller is edge-triggered, and
// setting the timerfd again makes it unreadable, so every expiry is an edge. One that
// comes before the goroutine waits is found by looking at the clock: see wait.
type descriptor struct {
	// file is the timerfd, nil while there is none.
	file *os.File
	raw  syscall.RawConn
	// waiter numbers the goroutine that waits. inside says that it calls the alarm's
	// function.
	waiter uint
	inside bool
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

// takeLocked returns the timerfd, if there is one, for the caller to close; that ends
// the waiter.
func (d *descriptor) takeLocked() *os.File {
	file := d.file
	d.file, d.raw = nil, nil
	return file
}

// openLocked opens the timerfd and starts its waiter, if there is none. It reports
// false if there is no descriptor to be had: then it is tried again with the next
// ring.
func (a *system) openLocked() bool {
	if a.fd.isOpen() {
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
	a.fd.file, a.fd.raw = file, raw
	a.waitLocked()
	return true
}

// replaceLocked has another goroutine wait in place of one that is held up in the
// alarm's function.
func (a *system) replaceLocked() {
	if a.fd.inside {
		a.waitLocked()
	}
}

// waitLocked starts a waiter, in place of one that there may be.
func (a *system) waitLocked() {
	a.fd.waiter++
	a.fd.inside = false
	a.active++
	go a.run(a.fd.file, a.fd.raw, a.fd.waiter)
}

// run waits and rings until the descriptor is closed or another waiter has taken
// over.
func (a *system) run(file *os.File, raw syscall.RawConn, waiter uint) {
	over := false
	defer func() {
		if !over {
			// f has ended this goroutine, with runtime.Goexit: the lock is held, as
			// ringLocked left it.
			a.fd.inside = a.fd.inside && a.fd.waiter != waiter
			a.active++
			go a.run(file, raw, waiter)
		}
		a.leaveLocked()
		a.mu.Unlock()
	}()
	for {
		a.wait(raw)
		a.mu.Lock()
		if a.fd.file != file || a.fd.waiter != waiter {
			over = true
			return
		}
		if now := time.Now(); a.set && !now.Before(a.when) {
			a.fd.inside = true
			a.ringLocked(now)
			if a.fd.waiter == waiter {
				a.fd.inside = false
			}
		}
		a.mu.Unlock()
	}
}

// wait blocks until the timerfd expires or the file is closed. It may return for
// nothing.
func (a *system) wait(raw syscall.RawConn) {
	asked := false
	// The error would say that the file is closed; run sees that for itself.
	raw.Read(func(uintptr) bool {
		if asked {
			return true // readable
		}
		asked = true
		// From here on an edge is not missed. One that came before belongs to a
		// moment that has passed.
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.exact && !time.Now().Before(a.when)
	})
}
