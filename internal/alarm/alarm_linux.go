package alarm

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickless/tickless/clock"
)

const (
	// linger is how long the descriptor is kept when the alarm is not set.
	linger = 20 * time.Millisecond

	// An idle process is woken a thousand times a second at most by package
	// time's timers. An exact alarm could wake it whenever something is due, and
	// waking costs far more than what is then done: 35 us of CPU on a virtual
	// machine. So there is a limit to how often it rings, over more than a burst:
	// timers that are due closer to one another than that are late by up to
	// spacing, which is still less than time's.
	spacing = 500 * time.Microsecond
	burst   = 64
)

// double is a timerfd and a timer of the runtime's, as one goroutine: it waits
// for the descriptor to become readable, through the runtime's network poller,
// with the read deadline as the second alarm.
//
// Nothing is ever read from the descriptor. The poller is edge-triggered, and
// setting the timerfd anew makes it unreadable, so every expiry is an edge. One
// that comes before the goroutine waits is found by looking at the clock: see
// wait.
type double struct {
	f func()

	mu sync.Mutex
	// All below is guarded by mu.

	// file is the timerfd, nil while there is none. The goroutine lives just as
	// long as it, but for a moment after Close.
	file *os.File
	raw  syscall.RawConn
	// set: the alarm is to ring at when. Otherwise when is the end of the linger.
	set    bool
	when   time.Time
	closed bool
	// done is closed when the goroutine has ended; nil until there was one.
	done chan struct{}
	// paced is when the alarm may ring without counting towards the burst: it
	// moves on by spacing with each ring. (This is the generic cell rate
	// algorithm of ITU-T I.371.)
	paced time.Time
	// ringing: f is being called, by the goroutine.
	ringing bool
	// fallback is used from when there was no descriptor to be had.
	fallback clock.Alarm
}

func newSystem(f func()) Alarm { return &double{f: f, paced: time.Now()} }

func (a *double) Reset(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if a.file == nil && a.fallback == nil {
		a.openLocked()
	}
	if a.fallback != nil {
		a.fallback.Reset(d)
		return
	}
	now := time.Now()
	d = max(d, a.paced.Sub(now)-burst*spacing, 1) // zero would unset the timerfd
	a.set, a.when = true, now.Add(d)
	// Neither can fail: the descriptor is open and of the right kind.
	a.raw.Control(func(fd uintptr) {
		unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	})
	a.file.SetReadDeadline(a.when)
}

func (a *double) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fallback != nil {
		a.fallback.Stop()
	}
	a.set = false
	if a.file != nil && !a.ringing {
		a.lingerLocked()
	}
}

// lingerLocked begins the linger. The timerfd may stay set: what it wakes then
// finds nothing to do.
func (a *double) lingerLocked() {
	a.when = time.Now().Add(linger)
	a.file.SetReadDeadline(a.when)
}

func (a *double) Close() <-chan struct{} {
	a.mu.Lock()
	a.closed, a.set = true, false
	if a.fallback != nil {
		a.fallback.Stop()
	}
	file, done := a.file, a.done
	a.file, a.raw = nil, nil
	a.mu.Unlock()
	if file != nil {
		// This ends the goroutine. It waits until nobody reads, so it is done
		// without the lock: the goroutine may be about to take that, inside its
		// Read.
		file.Close()
	}
	if done == nil {
		return closed
	}
	return done
}

// openLocked opens the timerfd and starts its goroutine, or the fallback.
func (a *double) openLocked() {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err == nil {
		file := os.NewFile(uintptr(fd), "timerfd")
		raw, err1 := file.SyscallConn()
		// A file that the network poller does not know has no deadlines.
		if err2 := file.SetReadDeadline(time.Time{}); err1 == nil && err2 == nil {
			a.file, a.raw = file, raw
			a.done = make(chan struct{})
			go a.run(file, raw, a.done)
			return
		}
		file.Close()
	}
	a.fallback = clock.System().NewAlarm(a.f)
}

// run waits and rings until the descriptor is closed.
func (a *double) run(file *os.File, raw syscall.RawConn, done chan struct{}) {
	over := false
	defer func() {
		if over {
			close(done)
			return
		}
		a.mu.Unlock() // as ringLocked left it
		// f has ended this goroutine, with runtime.Goexit. The alarm goes on.
		go a.run(file, raw, done)
	}()
	for {
		a.wait(raw)
		a.mu.Lock()
		if a.file != file {
			a.mu.Unlock()
			over = true
			return
		}
		if !time.Now().Before(a.when) {
			if a.set {
				a.ringLocked()
			} else {
				// The end of the linger, and of this goroutine.
				a.file, a.raw = nil, nil
				file.Close()
			}
		}
		a.mu.Unlock()
	}
}

// ringLocked calls f, without the lock.
func (a *double) ringLocked() {
	a.set, a.ringing = false, true
	if now := time.Now(); a.paced.Before(now) {
		a.paced = now
	}
	a.paced = a.paced.Add(spacing)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.ringing = false
		if !a.set && a.file != nil {
			a.lingerLocked()
		}
	}()
	a.f()
}

// wait blocks until the timerfd expires, the read deadline passes or the file is
// closed. It may return for nothing.
func (a *double) wait(raw syscall.RawConn) {
	asked := false
	// The error says which it was; the clock says all that matters.
	raw.Read(func(uintptr) bool {
		if asked {
			return true // readable
		}
		asked = true
		// From here on an edge is not missed. One that came before belongs to a
		// moment that has passed.
		a.mu.Lock()
		defer a.mu.Unlock()
		return !time.Now().Before(a.when)
	})
}
