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

// systemSteady returns the id of the current boot, and a clock of the time since the
// boot that stops while the machine sleeps.
func systemSteady() (boot string, read func() time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ownSteady()
	}
	return strings.TrimSpace(string(id)), func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		return time.Duration(t.Nano())
	}
}

// refuseNetwork returns an error for a folder on a network file system, where locks and
// syncs may have no effect.
func refuseNetwork(dir string) error {
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

// notify calls changed after a write to the log, and set after the wall clock was set
// or the machine has slept, until stop is called. It does not wake up otherwise.
func notify(path string, changed, set func()) (stop func(), err error) {
	folder, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	log := os.NewFile(uintptr(folder), "inotify")
	if _, err = unix.InotifyAddWatch(folder, filepath.Dir(path), unix.IN_MODIFY|unix.IN_CREATE); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	timer, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	wall := os.NewFile(uintptr(timer), "timerfd")
	arm := func() error {
		never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt32}}
		return unix.TimerfdSettime(timer, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil)
	}
	if err = arm(); err != nil {
		return nil, errors.Join(err, log.Close(), wall.Close())
	}
	name := filepath.Base(path) + "-wal\x00"
	go func() {
		for b := make([]byte, 16<<10); ; {
			n, err := log.Read(b)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:n]), name) { // events have the names
				changed()
			}
		}
	}()
	go func() {
		for b := make([]byte, 8); ; {
			if _, err := wall.Read(b); err != nil && !errors.Is(err, unix.ECANCELED) {
				return
			}
			if arm() != nil {
				return
			}
			set()
		}
	}()
	return func() { _, _ = log.Close(), wall.Close() }, nil
}
