package diskstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file's lock is the process', and is lost when the process closes any descriptor of
// that file: it does not keep the process itself out. So the process has a list of the
// directories that it holds, in which each is found under all of its names.
var held struct {
	mu   sync.Mutex
	dirs []*dirLock
}

// A dirLock is the lock of a directory. Close gives it back.
type dirLock struct {
	file io.Closer
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
	}
	var err error
	if l.file, err = fsys.Lock(fsys.PathJoin(dir, "LOCK")); err != nil {
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
	return l.file.Close()
}

func lockError(dir string, err error) error {
	if isFull(err) || isCrowded(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO) || missing(err) {
		return fmt.Errorf("diskstore: %w", err)
	}
	return fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
}
