package alarm

import (
	"context"
	"os"
	"runtime/pprof"
	"syscall"

	"go.uber.org/atomic"
)

// A descriptor is a timerfd, and a goroutine that waits until the timerfd expires and so
// becomes readable. Nothing is read from it: setting the timerfd makes it unreadable.
type descriptor struct {
	file         *os.File
	rawConn      syscall.RawConn
	fd           uintptr
	targetMoment atomic.Int64 // the moment that the timerfd is set for, or never; stored under the hub's lock
}

// openDescriptorLocked opens the descriptor if none is open. It reports false if the
// system refuses a timerfd. The next armForFirstAlarmLocked tries again.
func (h *hub) openDescriptorLocked() bool {
	if h.descriptor != nil {
		return true
	}
	file := newTimerfd()
	if file == nil {
		return false
	}
	d := &descriptor{file: file}
	d.targetMoment.Store(never)
	d.rawConn, _ = file.SyscallConn() // fails only for a nil file
	d.rawConn.Control(func(fd uintptr) { d.fd = fd })
	h.descriptor = d
	go h.wait(d)
	return true
}

// wait calls the functions of the due alarms each time the timerfd expires. It returns
// when the descriptor is closed.
//
// If a function ends this goroutine by runtime.Goexit, the next of the hub's timers to go
// off closes the descriptor.
func (h *hub) wait(d *descriptor) {
	pprof.SetGoroutineLabels(context.Background()) // drops the labels of the goroutine that set the alarm
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
		now := h.now()
		switch {
		case h.descriptor != d:
			h.mu.Unlock()
			return
		case d.targetMoment.Load() > now || h.firstMomentLocked() > now:
			h.armForFirstAlarmLocked(now) // the alarm was moved or stopped
			h.mu.Unlock()
		default:
			h.ringAndUnlock(now, d.targetMoment.Load())()
		}
	}
}

// setTarget sets the timerfd for moment at. The caller must hold the hub's lock.
func (d *descriptor) setTarget(now, at int64) {
	d.targetMoment.Store(at)
	setTimerfd(d.fd, at-now)
}
