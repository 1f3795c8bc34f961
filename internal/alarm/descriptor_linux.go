package alarm

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newTimerfd returns a timerfd that the runtime's network poller knows, or nil if there is
// none to be had.
func newTimerfd() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	if file.SetReadDeadline(time.Time{}) != nil {
		file.Close() // the network poller does not know it
		return nil
	}
	return file
}

// setTimerfd has the timerfd expire after d. It cannot fail: the descriptor is open and of
// the right kind.
func setTimerfd(fd uintptr, d int64) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1))} // zero would unset it
	// By Syscall the runtime would wake its monitor, if that sleeps.
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}
