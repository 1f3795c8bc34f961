package diskstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// makeDir makes a directory if there is none, and returns the name under which it is
// found from now on, wherever the process goes, and whatever becomes of the links on the
// way to it.
func makeDir(fsys vfs.FS, dir string) (string, error) {
	dir, err := absolute(fsys, dir)
	if err != nil {
		return "", err
	}
	if err := makeAll(fsys, dir); err != nil {
		if link, to, ok := dangles(fsys, dir); ok {
			return "", fmt.Errorf("diskstore: %s is a link to %s, which does not exist: %w", link, to, fs.ErrNotExist)
		}
		return "", fmt.Errorf("diskstore: %w", err)
	}
	if fsys != vfs.Default {
		return dir, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("diskstore: %w", err)
	}
	return real, nil
}

// makeAll makes a directory, and those on the way to it, and has their names be on the
// disk.
func makeAll(fsys vfs.FS, dir string) error {
	var made []string
	for name := dir; ; name = fsys.PathDir(name) {
		if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) || name == fsys.PathDir(name) {
			break
		}
		made = append(made, name)
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range slices.Backward(made) {
		if err := syncDir(fsys, fsys.PathDir(name)); err != nil {
			return err
		}
	}
	return nil
}

// absolute returns the name that a file has wherever the process goes.
func absolute(fsys vfs.FS, name string) (string, error) {
	if fsys != vfs.Default { // which has no working directory
		return name, nil
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("diskstore: %w", err)
	}
	return name, nil
}

// dangles reports whether a name, or one of those on the way to it, is a link to nothing.
func dangles(fsys vfs.FS, name string) (link, to string, ok bool) {
	for fsys == vfs.Default && name != filepath.Dir(name) {
		if to, err := os.Readlink(name); err == nil {
			_, err = os.Stat(name)
			return name, to, errors.Is(err, fs.ErrNotExist)
		}
		name = filepath.Dir(name)
	}
	return "", "", false
}

// lostAndFound is in a directory that is a disk of its own.
const lostAndFound = "lost+found"
