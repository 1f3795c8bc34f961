package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// ErrInUse is returned by [Restore] if a process has the file open. It wraps
// [store.ErrNotDone].
var ErrInUse = fmt.Errorf("sqlitestore: the file is in use: %w", store.ErrNotDone)

// Restore replaces the file at path, which may be damaged or missing, by a copy of a file
// that [Store.Backup] has made. It removes the old file's log. Copying a backup over a file
// without Restore loses tasks: SQLite would apply the old log to it.
//
// First stop every program that uses the file. Restore returns [ErrInUse] if a process has
// it open, and [ErrDamaged] if the backup is damaged; then the file has not changed. After
// any other error, repeat Restore.
//
// The file then has the tasks as they were at the time of the backup: tasks that were
// finished or cancelled since run again, and tasks that were scheduled since are missing.
// Restore takes some seconds a gigabyte.
func Restore(ctx context.Context, path, backup string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() { err = errors.Join(err, removeFiles(temp, temp+"-wal", temp+"-shm")) }()
	if err := f.Close(); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal"} { // a file that was copied has a log
		if err := copyFile(temp+suffix, backup+suffix); err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	if err := prepareBackup(ctx, temp); err != nil {
		return fmt.Errorf("the backup %s: %w", backup, err)
	}
	if err := refuseOpenFile(path); err != nil {
		return err
	}
	// Without its log, the old file may lack its latest commits. With a wrong log, the new
	// file would be damaged. So remove the log first.
	if err := removeFiles(path+"-wal", path+"-shm"); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// prepareBackup upgrades and verifies a file, and moves its log into it.
func prepareBackup(ctx context.Context, path string) error {
	s, err := Open(path, mustExist)
	if err != nil {
		return err
	}
	_, err = s.Verify(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return fmt.Errorf("%w: its log cannot be moved into the file", ErrDamaged)
	}
	return syncFile(path)
}

// refuseOpenFile returns ErrInUse if a process has the file open.
func refuseOpenFile(path string) error {
	file, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	openStores.Lock()
	defer openStores.Unlock()
	for s := range openStores.all {
		if os.SameFile(file, s.fileInfo) {
			return fmt.Errorf("%w: a Store of this process has %s open", ErrInUse, path)
		}
	}
	return refuseLockedFile(path)
}

// openStores has the open Stores of this process: the system does not report the locks of
// one's own process.
var openStores struct {
	sync.Mutex
	all map[*Store]bool
}

func (s *Store) setOpen(open bool) {
	openStores.Lock()
	defer openStores.Unlock()
	if openStores.all == nil {
		openStores.all = make(map[*Store]bool)
	}
	if delete(openStores.all, s); open {
		openStores.all[s] = true
	}
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func removeFiles(paths ...string) (err error) {
	for _, path := range paths {
		if e := os.Remove(path); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
