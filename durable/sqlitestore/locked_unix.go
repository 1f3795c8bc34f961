//go:build unix

package sqlitestore

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// refuseLockedFile returns ErrInUse if another process has the file open: each connection
// in WAL mode has a lock on these bytes of the file.
func refuseLockedFile(path string) error {
	const sharedFirst, sharedSize = 0x40000000 + 2, 510
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // this process has no locks on the file, which closing it would release
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return err
	}
	if lock.Type != unix.F_UNLCK {
		return fmt.Errorf("%w: process %d has %s open", ErrInUse, lock.Pid, path)
	}
	return nil
}

// accessError returns why the system refuses the file or its folder, or nil. It does not open the
// file: closing it would release the locks that this process may have on it.
func accessError(path string, readOnly bool) error {
	mode := uint32(unix.R_OK | unix.W_OK)
	if readOnly {
		mode = unix.R_OK
	}
	if err := unix.Access(path, mode); err != nil {
		return fmt.Errorf("this user may not read or write it: %w", err)
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("SQLite makes files beside it, and this user may not write its folder: %w", err)
	}
	return nil
}
