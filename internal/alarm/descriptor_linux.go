package alarm

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newTimerfd returns a timerfd that is registered with the runtime's network poller, or
// nil if the system refuses one.
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

// setTimerfd makes the timerfd expire after d. It cannot fail: the descriptor is open and
// a timerfd.
func setTimerfd(fd uintptr, d int64) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1))} // zero would unset the timerfd
	// Syscall would wake the runtime's monitor thread if that sleeps.
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}
