package sqlitestore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tickless/tickless/durable/store"
)

// bootClock returns the id of the current boot, and a clock that counts from the boot and
// stops while the machine sleeps.
func bootClock() (bootID string, read func() time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return processClock()
	}
	return strings.TrimSpace(string(id)), func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		return time.Duration(t.Nano())
	}
}

// refuseNetworkFolder returns an error if the folder is on a network file system. Locks
// and syncs may have no effect there.
func refuseNetworkFolder(dir string) error {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return nil // opening the file returns a better error
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC:
		return fmt.Errorf("sqlitestore: %s is on a network file system: %w", dir, store.ErrUnfit)
	}
	return nil
}

// watchLogAndClock calls onWrite after each write to the log. It calls onClockSet after
// the wall clock was set or the machine has slept.
func watchLogAndClock(path string, onWrite, onClockSet func()) (stop func(), err error) {
	inotify, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	fileEvents := os.NewFile(uintptr(inotify), "inotify")
	if _, err = unix.InotifyAddWatch(inotify, filepath.Dir(path), unix.IN_MODIFY|unix.IN_CREATE); err != nil {
		return nil, errors.Join(err, fileEvents.Close())
	}
	timerfd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, fileEvents.Close())
	}
	clockEvents := os.NewFile(uintptr(timerfd), "timerfd")
	armClockTimer := func() error {
		farFuture := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt32}}
		return unix.TimerfdSettime(timerfd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &farFuture, nil)
	}
	if err = armClockTimer(); err != nil {
		return nil, errors.Join(err, fileEvents.Close(), clockEvents.Close())
	}
	logName := filepath.Base(path) + "-wal\x00"
	go func() {
		for b := make([]byte, 16<<10); ; {
			n, err := fileEvents.Read(b)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:n]), logName) { // an event contains the file name
				onWrite()
			}
		}
	}()
	go func() {
		for b := make([]byte, 8); ; {
			if _, err := clockEvents.Read(b); err != nil && !errors.Is(err, unix.ECANCELED) {
				return
			}
			if armClockTimer() != nil {
				return
			}
			onClockSet()
		}
	}()
	return func() { _, _ = fileEvents.Close(), clockEvents.Close() }, nil
}
