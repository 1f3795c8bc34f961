package alarm

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newTimerfd returns a timerfd that is registered with the runtime's network poller. It
// returns nil if the system refuses one.
func newTimerfd() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	if file.SetReadDeadline(time.Time{}) != nil {
		file.Close() // not registered with the network poller
		return nil
	}
	return file
}

// setTimerfd makes timerfd fd expire after d nanoseconds. It cannot fail, because the
// timerfd is open.
func setTimerfd(fd uintptr, d int64) {
	timerSpec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1))} // zero would stop the timerfd
	// Syscall6 would wake the runtime's monitor thread if that thread sleeps.
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&timerSpec)), 0, 0, 0)
}

// newBlockingTimerfd returns a timerfd for awaitTimerfd. It reports false if the system
// refuses one.
func newBlockingTimerfd() (fd int, ok bool) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	return fd, err == nil
}

// awaitTimerfd blocks the thread until the timerfd expires.
func awaitTimerfd(fd int) {
	var expirations [8]byte
	for {
		if _, err := unix.Read(fd, expirations[:]); err != unix.EINTR {
			return
		}
	}
}

func closeTimerfd(fd int) { unix.Close(fd) }
