//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package diskstore

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// A flocked is a directory that is locked. The lock is that of the open directory: it is
// held whatever else the process opens and closes, until it ends.
type flocked struct{ dir *os.File }

// flock locks a directory, and fails at once if another one has it.
func flock(dir string) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return flocked{f}, nil
}

// Close gives the lock back. A process that is being started has the directory open for
// a moment too, so that closing it here would not do.
func (l flocked) Close() error {
	return errors.Join(syscall.Flock(int(l.dir.Fd()), syscall.LOCK_UN), l.dir.Close())
}
