package diskstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A directory has two locks. One is of the directory itself, where the system has such a
// lock (flock). The other is Pebble's, of the file LOCK, which on most systems is the
// process' (fcntl): it is lost when the process closes any descriptor of that file, as
// one that makes a copy of the directory does, and does not keep the process itself out.
// So the process has a list of the directories that it holds as well, in which each is
// found under all of its names.
var held struct {
	mu   sync.Mutex
	dirs []*dirLock
}

// A dirLock is the lock of a directory. Close gives it back.
type dirLock struct {
	file io.Closer
	own  io.Closer // or nil
	info os.FileInfo
}

// lockDir locks a directory.
func lockDir(fsys vfs.FS, dir string) (*dirLock, error) {
	held.mu.Lock()
	defer held.mu.Unlock()
	l := new(dirLock)
	if fsys == vfs.Default { // others have no directories under two names
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("diskstore: %w", err)
		}
		l.info = info
		if slices.ContainsFunc(held.dirs, func(o *dirLock) bool { return os.SameFile(o.info, info) }) {
			return nil, fmt.Errorf("%w: %s: by this process", ErrLocked, dir)
		}
		if l.own, err = flock(dir); err != nil {
			return nil, lockError(dir, err)
		}
	}
	var err error
	if l.file, err = fsys.Lock(fsys.PathJoin(dir, "LOCK")); err != nil {
		if l.own != nil {
			_ = l.own.Close()
		}
		return nil, lockError(dir, err)
	}
	if l.info != nil {
		held.dirs = append(held.dirs, l)
	}
	return l, nil
}

func (l *dirLock) Close() error {
	held.mu.Lock()
	defer held.mu.Unlock()
	held.dirs = slices.DeleteFunc(held.dirs, func(o *dirLock) bool { return o == l })
	err := l.file.Close()
	if l.own != nil {
		err = errors.Join(err, l.own.Close())
	}
	return err
}

func lockError(dir string, err error) error {
	if !isLocked(err) {
		return fmt.Errorf("diskstore: the lock of %s: %w", dir, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
}

// sharingViolation is the error of Windows for a file that another process has open.
const sharingViolation = syscall.Errno(32)

// isLocked reports whether an error says that somebody else has a lock, rather than that
// it cannot be had.
func isLocked(err error) bool {
	var file *fs.PathError
	var refused syscall.Errno
	switch {
	case errors.As(err, &file):
		return false // LOCK cannot be made
	case !errors.As(err, &refused):
		return true // the process itself has it
	}
	return refused == syscall.EAGAIN || refused == syscall.EWOULDBLOCK || runtime.GOOS == "windows" && refused == sharingViolation
}
