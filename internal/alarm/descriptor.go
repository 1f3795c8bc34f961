package alarm

import (
	"context"
	"os"
	"runtime/pprof"
	"slices"
	"syscall"

	"go.uber.org/atomic"
)

// A descriptor is a timerfd, and a goroutine that waits until the timerfd expires and so
// becomes readable. Nothing is read from it: setting the timerfd makes it unreadable.
//
// The goroutine calls the functions of the due alarms itself, and does not wait meanwhile.
// So the hub has two descriptors, and sets the one whose goroutine waits: functions that
// block delay no other. If neither goroutine waits, one descriptor gets another.
type descriptor struct {
	file         *os.File
	rawConn      syscall.RawConn
	fd           uintptr
	targetMoment atomic.Int64 // the moment that the timerfd is set for, or never; stored under the hub's lock

	// The hub's lock guards the fields below.

	// goroutine is the number of the descriptor's goroutine. An earlier goroutine ends when
	// its functions have returned.
	goroutine int
	isRinging bool // the goroutine is calling functions
}

// waitingDescriptorLocked returns a descriptor whose goroutine waits. It returns nil if
// the system refuses a timerfd. The next armForFirstAlarmLocked tries again.
func (h *hub) waitingDescriptorLocked() *descriptor {
	for i, d := range h.descriptors {
		if d == nil {
			if d = openDescriptor(); d == nil {
				break
			}
			h.descriptors[i] = d
			h.waitFor(d)
			if h.lookout == nil {
				h.lookout = h.openLookout()
			}
		}
		if !d.isRinging {
			return d
		}
	}
	d := h.descriptors[0]
	if d != nil {
		d.goroutine++
		d.isRinging = false
		h.waitFor(d)
	}
	return d
}

// openDescriptor returns a descriptor without a goroutine. It returns nil if the system
// refuses a timerfd.
func openDescriptor() *descriptor {
	file := newTimerfd()
	if file == nil {
		return nil
	}
	d := &descriptor{file: file}
	d.targetMoment.Store(never)
	d.rawConn, _ = file.SyscallConn() // fails only for a nil file
	d.rawConn.Control(func(fd uintptr) { d.fd = fd })
	return d
}

// waitFor starts a goroutine for a descriptor.
func (h *hub) waitFor(d *descriptor) {
	goroutine := d.goroutine
	go h.wait(func() { h.ringWhenReadable(d, goroutine) })
}

// wait runs on all goroutines of descriptors. docs/migrating.md tells users of goleak its
// name.
func (h *hub) wait(f func()) {
	pprof.SetGoroutineLabels(context.Background()) // drops the labels of the goroutine that set the alarm
	f()
}

// ringWhenReadable runs on a descriptor's goroutine. It calls the functions of the due
// alarms each time the timerfd expires. It returns when the descriptor is closed or has
// another goroutine.
//
// If a function ends this goroutine by runtime.Goexit, the descriptor seems to ring, and
// soon gets another goroutine or is closed.
func (h *hub) ringWhenReadable(d *descriptor, goroutine int) {
	calledBefore := false
	isReadable := func(uintptr) bool {
		if calledBefore {
			return true // the network poller has reported it
		}
		calledBefore = true
		// The network poller reports every expiry from here on. If the moment has already
		// passed, the timerfd may have expired before.
		return d.targetMoment.Load() <= h.now()
	}
	for {
		calledBefore = false
		d.rawConn.Read(isReadable) // an error means that the file is closed
		h.mu.Lock()
		now, targetMoment := h.now(), d.targetMoment.Load()
		if targetMoment <= now {
			d.targetMoment.Store(never) // it has expired
		}
		switch {
		case !slices.Contains(h.descriptors[:], d):
			h.mu.Unlock()
			return
		case targetMoment > now || h.firstMomentLocked() > now:
			h.armForFirstAlarmLocked(now) // the alarm was moved or stopped
			h.mu.Unlock()
		default:
			d.isRinging = true
			h.ringAndUnlock(now, targetMoment)()
			h.mu.Lock()
			if d.goroutine != goroutine {
				h.mu.Unlock()
				return
			}
			d.isRinging = false
			h.mu.Unlock()
		}
	}
}

// setTarget sets the timerfd for moment at. The caller must hold the hub's lock.
func (d *descriptor) setTarget(now, at int64) {
	d.targetMoment.Store(at)
	setTimerfd(d.fd, at-now)
}
