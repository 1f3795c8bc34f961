package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

// thisProcess returns a text that identifies this process: its PID namespace, its number
// there, and when it began.
var thisProcess = sync.OnceValue(func() string {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	began, ok := processBegin(os.Getpid())
	if err != nil || !ok {
		return ""
	}
	return fmt.Sprint(namespace, " ", os.Getpid(), " ", began)
})

// processLives reports whether the process of thisProcess may be alive. It is true for a
// process of another namespace, which cannot be seen, and for one that is not known.
func processLives(process string) bool {
	f, own := strings.Fields(process), strings.Fields(thisProcess())
	if len(f) != 3 || len(own) != 3 || f[0] != own[0] {
		return true
	}
	pid, err := strconv.Atoi(f[1])
	if err != nil {
		return true
	}
	began, ok := processBegin(pid)
	return ok && began == f[2]
}

// processBegin returns when a process began, in ticks since the boot. It returns false if
// there is no such process, or if it has ended and only waits for its parent.
func processBegin(pid int) (ticks string, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The fields from the third on follow the program's name, which may contain anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return "", false
	}
	return f[19], true
}
